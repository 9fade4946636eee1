// Puts what /fragment answers into <main>; without it the page is the same, still. A hidden page
// asks nothing. An answer that does not come (a frozen process, a lost host) is given up after ten
// seconds, and asked for again. What is open, focused, scrolled or selected stays, because only
// what differs is changed.
(function(){
  var main=document.querySelector("main"),live=document.getElementById("live");
  var age=document.getElementById("age"),title=document.title,last=Date.now(),state="",asking=false;
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
    fetch("fragment",{cache:"no-store",signal:given.signal}).then(function(answer){
      if(!answer.ok)throw new Error(answer.status);
      return answer.text();
    }).then(take).catch(function(error){
      if(error.name!=="AbortError")say("gone","no answer from the worker");
    }).then(function(){clearTimeout(limit);asking=false;});
  }
  document.addEventListener("visibilitychange",ask);
  setInterval(function(){
    ask();
    var seconds=Math.round((Date.now()-last)/1000);
    if(seconds<5||hidden())return;
    if(state!=="gone")say("stale","nothing new from the worker");
    age.textContent="what is shown is "+seconds+" s old";
  },1000);
  ask();
})();
