// Style and script of the status page, as they go out. The script only puts what /events sends into
// <main>; without it the page is the same, still.
#pragma once

#include <string_view>

namespace fencepost::metrics {

inline constexpr std::string_view kStatusStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1c2430;--dim:#5d6878;--line:#dde2e9;
--good:#12714a;--goodbg:#dff3e8;--warn:#8a5300;--warnbg:#fdeecb;--bad:#a8201a;--badbg:#fbdedb;
--bar:#3a6ea5}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--ink:#e6ebf2;--dim:#98a4b5;
--line:#303948;--good:#7ddaa9;--goodbg:#173a2a;--warn:#f2c466;--warnbg:#45350f;--bad:#ff9b93;
--badbg:#4d1d1a;--bar:#7fb0e6}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:76rem;margin:0 auto;padding:0 1rem}
header{display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:baseline;padding-top:1rem}
h1{font-size:1.2rem;margin:0}h2{font-size:1.1rem;margin:0}
h3{font-size:.8rem;margin:1.1rem 0 .3rem;color:var(--dim);text-transform:uppercase;
letter-spacing:.05em}
.dim{color:var(--dim)}.num{text-align:right;font-variant-numeric:tabular-nums}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;
margin:1rem 0}
.top{display:flex;flex-wrap:wrap;gap:.4rem .8rem;align-items:center}
.tag{border-radius:1rem;padding:.05rem .6rem;font-size:.85rem;font-weight:600;white-space:nowrap}
.good{color:var(--good);background:var(--goodbg)}.warn{color:var(--warn);background:var(--warnbg)}
.bad{color:var(--bad);background:var(--badbg)}
.why{overflow-wrap:anywhere}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem;
margin:.8rem 0 0}
.facts div{border:1px solid var(--line);border-radius:.5rem;padding:.45rem .65rem}
.facts b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}
.facts span{color:var(--dim);font-size:.85rem}
.facts .off b{color:var(--bad)}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th{font-weight:600;color:var(--dim);text-align:left;font-size:.8rem}
th.num{text-align:right}
td,th{padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td:last-child{overflow-wrap:anywhere}
svg{display:block;width:100%;height:2.2rem;margin-top:.2rem}
svg path{fill:none;stroke:var(--bar);stroke-width:1.5;vector-effect:non-scaling-stroke}
details{margin-top:1rem}summary{cursor:pointer;color:var(--dim)}
code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.88em;overflow-wrap:anywhere}
a{color:inherit}footer{color:var(--dim);padding-bottom:2rem;font-size:.9rem}
#live.warn{padding:0 .5rem;border-radius:1rem}
)css";

inline constexpr std::string_view kStatusScript = R"js(
(function(){
var main=document.querySelector("main"),live=document.getElementById("live"),last=0;
function say(text,bad){live.textContent=text;live.className=bad?"warn":"dim";}
var source=new EventSource("events");
source.onmessage=function(event){
last=Date.now();
var open={};
main.querySelectorAll("details").forEach(function(d){open[d.id]=d.open;});
main.innerHTML=JSON.parse(event.data);
main.querySelectorAll("details").forEach(function(d){if(d.id in open)d.open=open[d.id];});
say("live",false);
};
source.onerror=function(){say("no answer from the worker; what is shown is old",true);};
setInterval(function(){
if(last&&Date.now()-last>5000)say("nothing new for "+Math.round((Date.now()-last)/1000)+" s",true);
},1000);
})();
)js";

}  // namespace fencepost::metrics
