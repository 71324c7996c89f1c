// Zoom, search and details of the picture this stands in.
(function () {
  "use strict";
  var svg = document.currentScript ? document.currentScript.closest("svg") : document.documentElement;
  var data = svg.dataset;
  var total = Number(data.total), pad = Number(data.pad), row = Number(data.row), letter = Number(data.letter);
  var baseline = Number(data.baseline), nameType = data.nameType ? data.nameType + " " : "";
  var span = svg.viewBox.baseVal.width - 2 * pad;
  var down = data.inverted === "1";
  var part = function (id) { return svg.querySelector("#" + id); };
  var reset = part("reset"), searchButton = part("search"), caseButton = part("case");
  var details = part("details"), matched = part("matched");
  var state = { x: null, y: null, s: "" };
  var ignoreCase = false;

  var frames = Array.prototype.map.call(part("frames").children, function (g) {
    var title = g.firstChild.textContent;
    var rect = g.children[1];
    return {
      g: g, rect: rect, text: g.children[2] || null, title: title, name: title.slice(0, title.lastIndexOf(" (")),
      fill: rect.getAttribute("fill"), y: Number(rect.getAttribute("y")),
      x: Number(g.dataset.x), w: Number(g.dataset.w)
    };
  });
  // The root comes first; a frame's level is counted from it.
  frames.forEach(function (frame) { frame.level = Math.abs(frame.y - frames[0].y) / row; });

  var frameByElement = new Map(frames.map(function (frame) { return [frame.g, frame]; }));

  function cut(name, width) {
    var room = Math.floor((width - 6) / letter);
    if (room < 3) { return ""; }
    var letters = Array.from(name);
    return letters.length <= room ? name : letters.slice(0, room - 2).join("") + "..";
  }

  function place(frame, x, width) {
    frame.rect.setAttribute("x", x.toFixed(2));
    frame.rect.setAttribute("width", width.toFixed(2));
    var label = cut(frame.name, width);
    // Only frames that once had room for their name have an element for it.
    if (label && !frame.text) {
      frame.text = document.createElementNS(svg.namespaceURI, "text");
      frame.text.setAttribute("y", frame.y + baseline);
      frame.g.appendChild(frame.text);
    }
    if (frame.text) {
      frame.text.setAttribute("x", (x + 3).toFixed(2));
      frame.text.textContent = label;
    }
  }

  // Shows the target over the whole width, what it stands on faded, what stands on it, and nothing else.
  function zoom(target) {
    var scale = span / target.w, end = target.x + target.w;
    frames.forEach(function (frame) {
      var below = frame.level < target.level && frame.x <= target.x && frame.x + frame.w >= end;
      var above = frame.level >= target.level && frame.x >= target.x && frame.x + frame.w <= end;
      frame.g.classList.toggle("hide", !below && !above);
      frame.g.classList.toggle("above", below);
      if (below) { place(frame, pad, span); }
      if (above) { place(frame, pad + (frame.x - target.x) * scale, frame.w * scale); }
    });
    var whole = target === frames[0];
    reset.classList.toggle("hide", whole);
    state.x = whole ? null : target.x;
    state.y = whole ? null : target.level;
    keepState();
  }

  // The share of the whole that stands in or on a matching frame; what overlaps counts once.
  function share(found) {
    var sum = 0, end = 0;
    found.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
    found.forEach(function (frame) {
      if (frame.x >= end) { sum += frame.w; end = frame.x + frame.w; }
    });
    return 100 * sum / total;
  }

  function search(term) {
    var pattern = null;
    try {
      pattern = term ? new RegExp(term, ignoreCase ? "i" : "") : null;
    } catch (error) {
      matched.textContent = "Not a regular expression: " + term;
      return;
    }
    var found = frames.filter(function (frame) {
      var hit = pattern !== null && frame.level > 0 && pattern.test(frame.name);
      frame.rect.setAttribute("fill", hit ? "#dc3cdc" : frame.fill);
      return hit;
    });
    state.s = term;
    searchButton.textContent = pattern ? "Reset search" : "Search";
    matched.textContent = pattern ? "Matched: " + share(found).toFixed(2) + "%" : " ";
    keepState();
  }

  function ask() {
    if (state.s) { search(""); return; }
    var term = window.prompt("Search for (regular expression):", "");
    if (term) { search(term); }
  }

  function toggleCase() {
    ignoreCase = !ignoreCase;
    caseButton.classList.toggle("on", ignoreCase);
    if (state.s) { search(state.s); }
  }

  function keepState() {
    var query = new URLSearchParams();
    if (state.x !== null) { query.set("x", state.x); query.set("y", state.y); }
    if (state.s) { query.set("s", state.s); }
    var text = query.toString();
    try {
      window.history.replaceState(null, "", text ? "?" + text : window.location.pathname);
    } catch (error) {
      // A picture inside another page has no address of its own to keep its state in.
    }
  }

  function restoreState() {
    var query = new URLSearchParams(window.location.search);
    var term = query.get("s");
    var target = frames.find(function (frame) {
      return query.has("x") && frame.x === Number(query.get("x")) && frame.level === Number(query.get("y"));
    });
    if (target) { zoom(target); }
    if (term) { search(term); }
  }

  function frameOf(event) {
    var g = event.target.closest("#frames g");
    return g ? frameByElement.get(g) : null;
  }

  svg.addEventListener("click", function (event) {
    var frame = frameOf(event);
    if (frame) { zoom(frame); }
  });
  svg.addEventListener("mouseover", function (event) {
    var frame = frameOf(event);
    details.textContent = frame ? nameType + frame.title : " ";
  });
  reset.addEventListener("click", function () { zoom(frames[0]); });
  searchButton.addEventListener("click", ask);
  caseButton.addEventListener("click", toggleCase);
  window.addEventListener("keydown", function (event) {
    var control = event.ctrlKey || event.metaKey;
    if (event.key === "F3" || (control && event.key === "f")) { event.preventDefault(); ask(); }
    if (control && event.key === "i") { event.preventDefault(); toggleCase(); }
  });
  restoreState();
})();
