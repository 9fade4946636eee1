// Puts what the path data-from answers into <main>, every data-every seconds; without it the page is
// the same, still. A hidden page asks nothing. An answer that does not come (a frozen process, a lost
// host) is given up after ten seconds, and asked for again. What is open, focused, scrolled or
// selected stays, because only what differs is changed.
(function(){
  var main=document.querySelector("main"),live=document.getElementById("live");
  var age=document.getElementById("age"),title=document.title,last=Date.now(),state="",asking=false;
  var from=main.getAttribute("data-from"),every=Number(main.getAttribute("data-every")),ticks=0;
  function say(now,text){
    if(state===now)return;
    state=now;live.textContent=text;document.body.className=now;
  }
  function morph(from,to){
    if(from.nodeType!==to.nodeType||from.nodeName!==to.nodeName||from.id!==to.id){
      from.parentNode.replaceChild(to,from);return;
    }
    if(from.nodeType===3){if(from.data!==to.data)from.data=to.data;return;}
    Array.from(to.attributes).forEach(function(a){
      if(from.getAttribute(a.name)!==a.value)from.setAttribute(a.name,a.value);
    });
    Array.from(from.attributes).forEach(function(a){
      if(!to.hasAttribute(a.name)&&a.name!=="open")from.removeAttribute(a.name);
    });
    children(from,to);
  }
  function children(from,to){
    var old=Array.from(from.childNodes),fresh=Array.from(to.childNodes);
    fresh.forEach(function(node,i){
      if(i<old.length)morph(old[i],node);else from.appendChild(node);
    });
    old.slice(fresh.length).forEach(function(node){from.removeChild(node);});
  }
  function take(text){
    var next=document.createElement("template");
    next.innerHTML=text;
    children(main,next.content);
    document.title=document.getElementById("summary").getAttribute("data-title")+title;
    last=Date.now();age.textContent="";
    say("live","live");
  }
  function hidden(){return document.visibilityState==="hidden";}
  function ask(){
    if(asking||hidden())return;
    asking=true;
    var given=new AbortController(),limit=setTimeout(function(){given.abort();},10000);
    fetch(from,{cache:"no-store",signal:given.signal}).then(function(answer){
      if(!answer.ok)throw new Error(answer.status);
      return answer.text();
    }).then(take).catch(function(error){
      if(error.name!=="AbortError")say("gone","no answer from the worker");
    }).then(function(){clearTimeout(limit);asking=false;});
  }
  // What posts: by a second press, half a second after the first at least, so that neither a double
  // click nor a key that is held down does it, and ten seconds at most.
  function guard(control){
    var told=document.getElementById("_told"),token=document.getElementById("_token");
    var armed=null,last=null,name="",pressed=0,limit=0;
    function calm(text){
      if(armed){armed.textContent=name;armed.className="";}
      armed=null;clearTimeout(limit);told.textContent=text;
    }
    function post(button){
      var headers={"X-Fencepost-Page":control.getAttribute("data-page")};
      var from=button.getAttribute("data-body");
      if(token)headers.Authorization="Bearer "+token.value;
      fetch(button.getAttribute("data-path"),{method:"POST",cache:"no-store",headers:headers,
        body:from?document.getElementById(from).value:""}).then(function(answer){
        return answer.text();
      }).then(function(text){told.textContent=text.trim();}).catch(function(error){
        told.textContent="no answer: "+error.message;
      });
    }
    control.addEventListener("click",function(event){
      var button=event.target,now=Date.now(),soon=button===last&&now-pressed<500;
      if(button.nodeName!=="BUTTON")return;
      pressed=now;last=button;
      if(button.hasAttribute("data-once")){
        if(soon)return;
        calm("\u2026");
        post(button);
      }else if(button!==armed){
        calm("");
        armed=button;name=button.textContent;
        button.className="armed";button.textContent=name+"?";
        told.textContent=name+": press it again within ten seconds";
        limit=setTimeout(function(){calm("");},10000);
      }else if(!soon){
        calm(name+" \u2026");
        post(button);
      }
    });
    control.addEventListener("keydown",function(event){if(event.key==="Escape")calm("");});
  }
  if(document.getElementById("_control"))guard(document.getElementById("_control"));
  document.addEventListener("visibilitychange",ask);
  setInterval(function(){
    if(++ticks%every===0)ask();
    var seconds=Math.round((Date.now()-last)/1000);
    if(seconds<5||hidden())return;
    if(state!=="gone")say("stale","nothing new from the worker");
    age.textContent="what is shown is "+seconds+" s old";
  },1000);
  ask();
})();
