// Style and script of the status page, as they go out. The script only puts what /fragment answers
// into <main>; without it the page is the same, still.
#pragma once

#include <string_view>

namespace fencepost::metrics {

inline constexpr std::string_view kStatusStyle = R"css(
:root{color-scheme:light dark;--bg:#f4f6f8;--card:#fff;--ink:#17202c;--dim:#566173;--line:#dbe1e8;
--good:#0e6a45;--goodbg:#dcf2e6;--warn:#7d4b00;--warnbg:#fdecc8;--bad:#a11b15;--badbg:#fbdcd9;
--note:#2c5282;--notebg:#e0ecf8;--bar:#2f6aa8}
@media (prefers-color-scheme:dark){:root{--bg:#10141a;--card:#191f27;--ink:#e6ebf2;--dim:#9ba7b8;
--line:#2d3541;--good:#7ddaa9;--goodbg:#15392a;--warn:#f2c466;--warnbg:#41320e;--bad:#ff9f97;
--badbg:#4a1b18;--note:#9cc4f2;--notebg:#1b304a;--bar:#7fb0e6}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:84rem;margin:0 auto;padding:0 1rem}
header{display:flex;flex-wrap:wrap;gap:.2rem 1rem;align-items:baseline;padding-top:1rem;
padding-bottom:.2rem;background:var(--bg)}
h1{font-size:1.15rem;margin:0}h2{font-size:1.3rem;margin:0;overflow-wrap:anywhere}
h3{font-size:.8rem;margin:1.4rem 0 .3rem;color:var(--dim);text-transform:uppercase;
letter-spacing:.06em}h3 .tag{text-transform:none;letter-spacing:0}h3+p{margin:.2rem 0 .4rem}
p{font-size:.92rem}
.dim{color:var(--dim)}.num{text-align:right;font-variant-numeric:tabular-nums}
.state{margin-left:auto;color:var(--dim)}
.state #live{border-radius:1rem;padding:.05rem .6rem}
body.live #live{color:var(--good);background:var(--goodbg)}
body.stale #live,body.gone #live{color:var(--bad);background:var(--badbg);font-weight:600}
body.stale main,body.gone main{filter:grayscale(1)}
body.stale header,body.gone header{position:sticky;top:0;z-index:1}
section,.summary{background:var(--card);border:1px solid var(--line);border-radius:.7rem;
padding:1rem 1.1rem;margin:.9rem 0}
.summary{border-left:.4rem solid var(--note)}
.summary.good{border-left-color:var(--good)}.summary.warn{border-left-color:var(--warn)}
.summary.bad{border-left-color:var(--bad)}
p.verdict{margin:0;font-size:1.15rem;font-weight:600}
.summary.good .verdict{color:var(--good)}.summary.warn .verdict{color:var(--warn)}
.summary.bad .verdict{color:var(--bad)}
.summary ul{list-style:none;margin:.5rem 0 0;padding:0}
.summary li{padding:.4rem 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
.summary li b{font-weight:600}.summary li span:last-child{color:var(--dim)}
.top{display:flex;flex-wrap:wrap;gap:.3rem .8rem;align-items:center}
.tag{border-radius:1rem;padding:.05rem .6rem;font-size:.83rem;font-weight:600;white-space:nowrap}
.tag.good{color:var(--good);background:var(--goodbg)}
.tag.warn{color:var(--warn);background:var(--warnbg)}
.tag.bad{color:var(--bad);background:var(--badbg)}
.tag.note{color:var(--note);background:var(--notebg)}
.facts{display:grid;grid-template-columns:repeat(5,1fr);gap:.2rem 1.4rem;margin:.8rem 0 0}
.fact{min-width:0;overflow-wrap:anywhere;padding:.5rem 0;border-top:1px solid var(--line)}
.fact dt{color:var(--dim);font-size:.85rem}
.fact dd{margin:0}.fact b{display:block;font-size:1.9rem;line-height:1.2;font-weight:600;
font-variant-numeric:tabular-nums}
.small b{font-size:1.25rem}
.fact span{color:var(--dim);font-size:.85rem}
.fact.warn b{color:var(--warn)}.fact.bad b{color:var(--bad)}
.broad dd{display:grid;grid-template-columns:auto 1fr;column-gap:1rem;align-items:end}
.broad span{grid-column:1/-1;grid-row:2}
.broad{grid-column:span 2}
.broad b{white-space:nowrap}
@media (max-width:60rem){.facts{grid-template-columns:repeat(3,1fr)}
.broad{grid-column:1/-1}.small .fact:last-child{grid-column:span 2}}
@media (max-width:34rem){.facts{grid-template-columns:1fr 1fr}
.fact:last-child,.small .fact:last-child{grid-column:1/-1}}
.pair{display:grid;grid-template-columns:minmax(0,2fr) minmax(0,3fr);gap:0 2.5rem;
align-items:start}@media (max-width:64rem){.pair{grid-template-columns:minmax(0,1fr)}}
.pair>div{min-width:0}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
thead th{font-weight:600;color:var(--dim);font-size:.8rem;white-space:nowrap}
th{font-weight:400;text-align:left}th.num{text-align:right}
td,th{padding:.28rem .9rem .28rem 0;border-bottom:1px solid var(--line);vertical-align:top}
tbody th{overflow-wrap:anywhere;min-width:6.5rem}tbody td:last-child{min-width:6rem}
td,td:last-child{overflow-wrap:anywhere}th:last-child,td:last-child{padding-right:0}
tbody th code{color:var(--dim)}th.node{width:60%}
.topic{display:inline-block;max-width:13rem;overflow:hidden;text-overflow:ellipsis;
white-space:nowrap;vertical-align:bottom}
.goes-on>*{border-bottom:0;padding-bottom:0}.more td{padding-top:0}
.narrowly{display:none;font-size:.88rem}
.events{list-style:none;margin:0;padding:0;font-size:.92rem}
.events li{display:grid;grid-template-columns:10.5rem 5rem 11.5rem 1fr;gap:0 .9rem;
align-items:baseline;padding:.35rem 0;border-top:1px solid var(--line)}
.events li>*{justify-self:start;overflow-wrap:anywhere;min-width:0}
time{color:var(--dim);white-space:nowrap;font-variant-numeric:tabular-nums}
@media (max-width:48rem){.broadly{display:none}.narrowly{display:block}
td,th{padding-right:.7rem}td:nth-child(3),th:nth-child(3){padding-right:0}
thead th{white-space:normal}tbody th{width:60%}tbody th code{display:block;font-size:.8em}
.topic{max-width:8rem}
.events li{display:flex;flex-wrap:wrap;gap:.1rem .7rem}.what{flex:1 1 100%}}
svg{display:block;width:100%;height:2.3rem}
svg path{fill:none;stroke:var(--bar);stroke-width:1.6;vector-effect:non-scaling-stroke}
details{margin-top:.9rem}summary{cursor:pointer;color:var(--dim)}
code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.88em}
td code,.num{white-space:nowrap}.long code{white-space:normal;overflow-wrap:anywhere}
a{color:inherit}:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
footer{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;color:var(--dim);padding-bottom:2rem;
font-size:.9rem}
)css";

// A hidden page asks nothing. An answer that does not come (a frozen process, a lost host) is given
// up after ten seconds, and asked for again. What is open, focused, scrolled or selected stays,
// because only what differs is changed.
inline constexpr std::string_view kStatusScript = R"js(
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
)js";

}  // namespace fencepost::metrics
