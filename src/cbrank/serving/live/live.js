// The live page. Names of columns come from strangers: they are only ever put in as text.
"use strict";

const at = id => document.getElementById(id);
const put = (item, text) => { if (item.textContent !== text) item.textContent = text; };
const made = (tag, text, kind) => {
  const item = document.createElement(tag);
  if (text !== undefined) item.textContent = text;
  if (kind) item.className = kind;
  return item;
};

// Numbers -------------------------------------------------------------------------------------------

const NONE = "–";
const known = value => typeof value === "number" && Number.isFinite(value);
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const fixed = (value, digits) => known(value) ? value.toFixed(digits) : NONE;
const count = value => known(value) ? whole.format(value) : NONE;
const rate = value => !known(value) ? NONE : value > 0 && value < 9.95 ? value.toFixed(1) : whole.format(value);
const time = value => !known(value) ? NONE : value < 9.95 ? value.toFixed(1) : whole.format(value);
const plain = value => !known(value) ? NONE : Math.abs(value) >= 1e4 ? short.format(value) : `${Number(value.toPrecision(3))}`;
const percent = value => {
  if (!known(value)) return NONE;
  const size = 100 * value;
  return `${size === 0 || size >= 10 ? size.toFixed(1) : size.toPrecision(2)}%`;
};
const lasted = seconds => {
  const parts = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [unit, name] = parts.find(([size]) => seconds >= size) ?? parts[3];
  const many = Math.floor(seconds / unit);
  return `${many} ${name}${many === 1 ? "" : "s"}`;
};
const day = seconds => new Date(1000 * seconds).toISOString().slice(0, 10);

// Drawing -------------------------------------------------------------------------------------------

const drawn = (tag, attributes, text) => {
  const item = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) item.setAttribute(name, value);
  if (text !== undefined) item.textContent = text;
  return item;
};
const canvas = (box, height, label) => {
  const width = Math.max(120, Math.floor(box.clientWidth));
  const given = { width, height, viewBox: `0 0 ${width} ${height}` };
  const svg = drawn("svg", label ? { ...given, role: "img", "aria-label": label } : given);
  box.replaceChildren(svg);
  return [svg, width];
};
const scale = (low, high, from, to) => value => from + (to - from) * (value - low) / (high - low || 1);
const ticks = (low, high, most) => {
  const raw = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(part => part * power).find(size => size >= raw);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) found.push(n * step);
  return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
};
const line = (xs, ys) => xs.map((x, n) => `${n ? "L" : "M"}${x.toFixed(1)} ${ys[n].toFixed(1)}`).join("");
const band = (xs, lows, highs) => `${line(xs, highs)}L${line([...xs].reverse(), [...lows].reverse()).slice(1)}Z`;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const width = text => 6.6 * text.length; // about, of a label
const cut = (text, room) => width(text) <= room ? text : `${text.slice(0, Math.max(1, Math.floor(room / 6.6) - 1))}…`;

const ALL = 1, RECENT = 4; // places of an AUC in a point of the path, its interval after it
const drawPath = points => {
  const box = at("path");
  if (!points?.length) {
    box.replaceChildren(made("p", "The line begins with the first rows of both classes that have labels.", "soft"));
    at("path-table").replaceChildren();
    return;
  }
  const latest = points.at(-1);
  const label = `Honest AUC along ${count(latest[0])} rows learned: all rows ${fixed(latest[ALL], 4)}, recent rows ${fixed(latest[RECENT], 4)}. The table below has the numbers.`;
  const height = box.clientWidth < 560 ? 240 : 300;
  const [svg, full] = canvas(box, height, label);
  const left = 40, right = full - (full < 560 ? 8 : 74), top = 10, bottom = height - 38;
  // Early intervals are as wide as the scale: the later half decides what is shown.
  const late = points.slice(Math.floor(points.length / 2));
  const shown = [...points.flatMap(p => [p[ALL], p[RECENT]]), ...late.flatMap(p => [p[2], p[3], p[5], p[6]])];
  const margin = Math.max(0.01, 0.05 * (Math.max(...shown) - Math.min(...shown)));
  const low = Math.max(0, Math.min(...shown) - margin), high = Math.min(1, Math.max(...shown) + margin);
  const y = scale(low, high, bottom, top), x = scale(points.length > 1 ? points[0][0] : 0, latest[0], left, right);
  const [marks, digits] = ticks(low, high, height < 260 ? 5 : 7);
  for (const value of marks) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
    svg.append(drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(Math.max(2, digits))));
  }
  const [stops] = ticks(points.length > 1 ? points[0][0] : 0, latest[0], Math.floor((right - left) / 60));
  for (const value of stops)
    svg.append(drawn("text", { x: clamp(x(value), left, right - 12), y: bottom + 17, "text-anchor": "middle" }, short.format(value)));
  svg.append(drawn("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  svg.append(drawn("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, "rows learned"));
  const xs = points.map(point => x(point[0])), inside = value => clamp(y(value), top, bottom);
  const kinds = [[RECENT, "of-recent", "recent"], [ALL, "of-all", "all rows"]];
  for (const [place, kind] of kinds)
    svg.append(drawn("path", { class: `band ${kind}`, d: band(xs, points.map(p => inside(p[place + 1])), points.map(p => inside(p[place + 2]))) }));
  for (const [place, kind] of kinds)
    svg.append(drawn("path", { class: `line ${kind}`, d: line(xs, points.map(p => inside(p[place]))) }));
  if (full >= 560) {
    const ends = kinds.map(([place]) => inside(latest[place]));
    const above = ends[0] <= ends[1] ? 0 : 1, gap = Math.max(0, 15 - Math.abs(ends[0] - ends[1])) / 2;
    kinds.forEach(([, kind, name], n) =>
      svg.append(drawn("text", { class: kind, x: right + 8, y: ends[n] + 4 + (n === above ? -gap : gap) }, name)));
  }
  const rows = Array.from({ length: Math.min(12, points.length) }, (_, n, many = Math.min(12, points.length)) =>
    points[many > 1 ? Math.round(n * (points.length - 1) / (many - 1)) : 0]);
  fill(at("path-table"), rows.map(p => [
    count(p[0]), fixed(p[1], 4), `${fixed(p[2], 3)} to ${fixed(p[3], 3)}`, fixed(p[4], 4), `${fixed(p[5], 3)} to ${fixed(p[6], 3)}`,
  ]));
};

const fill = (body, rows) => body.replaceChildren(...rows.map(cells => {
  const row = made("tr"), head = made("th", cells[0]);
  head.scope = "row";
  row.append(head, ...cells.slice(1).map(text => made("td", text)));
  return row;
}));

const drawSpark = (box, values) => {
  const [svg, full] = canvas(box, 38);
  const there = values.filter(known);
  if (there.length < 2) return;
  const span = clamp(values.length, 30, TRACE), first = span - values.length;
  const x = scale(0, span - 1, 1, full - 1), y = scale(0, Math.max(...there, 1e-9), 36, 2);
  svg.append(drawn("line", { class: "grid", x1: 0, x2: full, y1: 37, y2: 37 }));
  let d = "", pen = "M";
  values.forEach((value, n) => {
    if (!known(value)) { pen = "M"; return; } // a gap
    d += `${pen}${x(first + n).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  svg.append(drawn("path", { class: "line thin of-all", d }));
};

// What moved ----------------------------------------------------------------------------------------

const reach = (terms, low, high) => {
  const ends = terms.flatMap(term => term.after.flatMap((value, n) => {
    const half = term.deviation ? Math.min(1.96 * term.deviation[n], 1) : 0; // wider bands are cut
    return [value - half, value + half, term.before[n]];
  }));
  const least = Math.min(low, ...ends), most = Math.max(high, ...ends), margin = 0.04 * (most - least);
  return [least - margin, most + margin];
};
const drawCurve = (box, term, label) => {
  const height = 180, [svg, full] = canvas(box, height, label);
  const left = 36, right = full - 6, top = 6, bottom = height - 22;
  const [low, high] = reach([term], -0.1, 0.1), [first, last] = [term.grid[0], term.grid.at(-1)];
  const x = scale(first, last, left, right), y = scale(low, high, bottom, top);
  const [marks, digits] = ticks(low, high, 6);
  for (const value of marks) {
    svg.append(drawn("line", { class: Math.abs(value) < 1e-9 ? "axis" : "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
    svg.append(drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(digits)));
  }
  const stops = term.kind === "time" ? [[first, "start"], [last, "end"]]
    : ticks(first, last, Math.max(2, Math.floor((right - left) / 60)))[0].map(value => [value, "middle"]);
  for (const [value, anchor] of stops)
    svg.append(drawn("text", { x: x(value), y: bottom + 17, "text-anchor": anchor }, term.kind === "time" ? day(value) : plain(value)));
  const xs = term.grid.map(x), inside = value => clamp(y(value), top, bottom);
  if (term.deviation) {
    const half = term.deviation.map(size => 1.96 * size);
    svg.append(drawn("path", { class: "band of-all", d: band(xs, term.after.map((v, n) => inside(v - half[n])), term.after.map((v, n) => inside(v + half[n]))) }));
  }
  svg.append(drawn("path", { class: "line of-before", d: line(xs, term.before.map(inside)) }));
  svg.append(drawn("path", { class: "line of-all", d: line(xs, term.after.map(inside)) }));
};
// Rows of dots: where each name stood, and where it stands.
const drawDots = (box, rows, label) => {
  const step = 24, height = rows.length * step + 26, [svg, full] = canvas(box, height, label);
  const room = Math.min(0.42 * full, Math.max(...rows.map(row => width(row.name))) + 4);
  const left = room + 10, right = full - 8, bottom = rows.length * step + 4;
  const as = rows.map(row => ({ after: [row.after], before: [row.before], deviation: row.deviation === null ? null : [row.deviation] }));
  const [low, high] = reach(as, -0.05, 0.05), x = scale(low, high, left, right);
  const [marks, digits] = ticks(low, high, Math.max(2, Math.floor((right - left) / 70)));
  for (const value of marks) {
    svg.append(drawn("line", { class: Math.abs(value) < 1e-9 ? "axis" : "grid", x1: x(value), x2: x(value), y1: 2, y2: bottom }));
    svg.append(drawn("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, value.toFixed(digits)));
  }
  rows.forEach((row, n) => {
    const y = n * step + step / 2 + 2, inside = value => clamp(x(value), left, right);
    const name = drawn("text", { class: "name", x: room, y: y + 4, "text-anchor": "end" }, cut(row.name, room));
    name.append(drawn("title", {}, row.name));
    svg.append(name);
    if (row.deviation !== null) {
      const half = 1.96 * row.deviation;
      svg.append(drawn("line", { class: "whisker", x1: inside(row.after - half), x2: inside(row.after + half), y1: y, y2: y }));
    }
    svg.append(drawn("line", { class: "shift", x1: x(row.before), x2: x(row.after), y1: y, y2: y }));
    svg.append(drawn("circle", { class: "dot-before", cx: x(row.before), cy: y, r: 4 }));
    svg.append(drawn("circle", { class: "dot-now", cx: x(row.after), cy: y, r: 4.5 }));
  });
};

const sentence = term => {
  const moved = `Moved by ${Number(term.moved.toPrecision(2))} of the spread of scores`;
  if (term.errors === null) return `${moved}; no standard error is known of it.`;
  const errors = `${Number(term.errors.toPrecision(2))} standard errors`;
  return `${moved}, ${errors}${term.errors < 2 ? ": this may be chance" : ""}.`;
};
// Panels stay where they are while their content changes, so that an open table stays open.
const panels = [];
const panel = n => {
  if (!panels[n]) {
    const whole = made("article"), box = made("div", undefined, "picture"), body = made("tbody");
    const heading = made("h3"), text = made("p", undefined, "soft"), details = made("details");
    const table = made("table"), head = made("thead"), row = made("tr"), scroll = made("div", undefined, "scroll");
    const heads = ["value", "before", "now", "± 95%"].map(name => made("th", name));
    for (const item of heads) item.scope = "col";
    row.append(...heads);
    head.append(row);
    table.append(head, body);
    scroll.append(table);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    details.append(made("summary", "As a table"), scroll);
    whole.append(heading, text, box, details);
    panels[n] = { whole, heading, text, box, body, scroll, details };
  }
  return panels[n];
};
const rowsOf = term => term.grid.map((name, n) => ({
  name, before: term.before[n], after: term.after[n], deviation: term.deviation ? term.deviation[n] : null,
}));
const tabled = (rows, name) => rows.map(row => [
  name(row.name), fixed(row.before, 3), fixed(row.after, 3), row.deviation === null ? NONE : fixed(1.96 * row.deviation, 3),
]);
const drawMoved = moved => {
  const terms = moved?.terms ?? [], weights = terms.length > 0 && terms[0].kind === "weight";
  const since = moved ? `${lasted(moved.seconds)} and ${count(moved.rows)} row${moved.rows === 1 ? "" : "s"} ago` : "";
  const sure = terms.some(term => term.errors === null || term.errors >= 2);
  put(at("moved-since"), !moved
    ? "The model is compared with itself of about a minute ago. Nothing has been learned since."
    : !terms.length ? `Nothing has moved since ${since}.`
    : `${weights ? "Weights" : "What columns add to scores"} now and ${since}, in units of the spread of scores, those that moved farthest first.${sure ? "" : " None moved by two standard errors, so all of this may be chance."}`);
  at("legend").hidden = !terms.length;
  at("terms").classList.toggle("one", weights);
  const shown = weights ? [terms] : terms.map(term => [term]);
  if (at("terms").childElementCount !== shown.length) // else what has the focus keeps it
    at("terms").replaceChildren(...shown.map((_, n) => panel(n).whole));
  shown.forEach((group, n) => {
    const { heading, text, box, body, scroll } = panel(n), [term] = group;
    put(heading, weights ? "Weights" : term.name);
    scroll.setAttribute("aria-label", weights ? "Weights before and now" : `${term.name} before and now`);
    const label = `Before and now; the table below has the numbers. ${group.map(each => `${each.name}: ${sentence(each)}`).join(" ")}`;
    if (weights) {
      put(text, `A weight is times the standard deviation of its column. Farthest: ${term.name}. ${sentence(term)}`);
      const rows = group.map(each => ({ name: each.name, before: each.before[0], after: each.after[0], deviation: each.deviation?.[0] ?? null }));
      drawDots(box, rows, label);
      fill(body, tabled(rows, name => name));
      return;
    }
    put(text, sentence(term));
    const rows = rowsOf(term);
    if (term.kind === "bars") {
      drawDots(box, rows, label);
      fill(body, tabled(rows, name => name));
    } else {
      drawCurve(box, term, label);
      const some = rows.filter((_, at) => at % Math.ceil(rows.length / 8) === 0 || at === rows.length - 1);
      fill(body, tabled(some, term.kind === "time" ? day : plain));
    }
  });
};

// The numbers of a second -----------------------------------------------------------------------------

const TRACE = 120; // seconds of the small lines
const traces = new Map(["rows_scored", "rows_learned", "requests", "score", "learn", "waiting"].map(name => [name, []]));
const tiles = new Map([...document.querySelectorAll("[data-tile]")].map(tile => [tile.dataset.tile, tile]));
let history = [], moved = null, latest = null, last = null, quiet = 0;

const tile = (name, text, unit, note) => {
  const item = tiles.get(name), figure = item.querySelector(".figure");
  if (figure.dataset.text !== text) {
    figure.dataset.text = text;
    figure.replaceChildren(text, " ", made("small", unit));
  }
  put(item.querySelector(".note"), note);
};
const trace = (name, value) => {
  const values = traces.get(name);
  values.push(known(value) ? value : null);
  if (values.length > TRACE) values.shift();
};
const drawTraces = () => {
  for (const [name, values] of traces) drawSpark(tiles.get(name).querySelector(".spark"), values);
};
const ends = name => {
  const there = traces.get(name).filter(known);
  return there.length > 1 ? `; highest ${rate(Math.max(...there))}, lowest ${rate(Math.min(...there))}` : "";
};
const interval = ({ low, high }) => known(low) && known(high) ? `95% interval ${fixed(low, 3)} to ${fixed(high, 3)}` : "";

const show = news => {
  if (news.history) { history = news.history; drawPath(history); }
  if ("moved" in news) { moved = news.moved; drawMoved(moved); }
  latest = news;
  const { auc, recent, drift, rates, latency_ms: times } = news;
  put(at("model"), news.model);
  put(at("facts"), `Up for ${lasted(news.uptime_s)}; ${count(news.rows_ever)} rows learned in all.`);
  put(at("alarm"), news.learning ? news.learning : "");
  put(at("auc"), fixed(auc.value, 4));
  put(at("auc-range"), interval(auc));
  put(at("recent"), fixed(recent.value, 4));
  put(at("recent-range"), interval(recent));
  const word = drift.word === "none" ? NONE : drift.word;
  put(at("drift"), word);
  at("drift").className = `hero word ${word}`;
  put(at("drift-why"), drift.sentence);
  quiet = rates.rows_learned === 0 ? quiet + 1 : 0;
  put(at("standing"), quiet > 10 ? `No label has come for ${lasted(quiet + 9 - (quiet + 9) % 10)}: these numbers stand still.` : "");

  for (const name of ["rows_scored", "rows_learned", "requests"]) trace(name, rates[name]);
  for (const name of ["score", "learn"]) trace(name, times[name]?.[0]);
  trace("waiting", news.waiting);
  tile("rows_scored", rate(rates.rows_scored), "a second", `${count(news.rows_scored)} since the start${ends("rows_scored")}`);
  tile("rows_learned", rate(rates.rows_learned), "a second", `${count(news.rows_learned)} since the start${ends("rows_learned")}`);
  tile("requests", rate(rates.requests), "a second", `${count(news.requests)} since the start, ${count(news.refused)} refused`);
  for (const name of ["score", "learn"]) {
    const [middle, high] = times[name] ?? [];
    tile(name, time(middle), "ms", known(high) ? `99th percentile ${time(high)} ms` : "no request yet");
  }
  const room = news.waiting_room > 0 ? `${percent(news.waiting_room)} of the room for them; ` : "";
  tile("waiting", count(news.waiting), news.waiting === 1 ? "row" : "rows", `${room}each waits for ${lasted(news.wait_s)} at most`);

  const served = drift.probabilities;
  put(at("above"), percent(news.share_above));
  put(at("mean"), percent(served.mean));
  put(at("share"), percent(served.share?.value));
  put(at("share-range"), served.share ? `95% interval ${percent(served.share.low)} to ${percent(served.share.high)}` : "of the labels that came");
  put(at("calibrated"), served.sentence);
  put(at("labelled"), known(served.labelled) ? `Labels have come for ${percent(served.labelled)} of the rows scored; rows without one may be of either kind.` : "");
  if (!document.hidden) drawTraces();
};

const redraw = () => {
  drawPath(history);
  drawMoved(moved);
  drawTraces();
};
let waitingToDraw = 0;
new ResizeObserver(() => {
  cancelAnimationFrame(waitingToDraw);
  waitingToDraw = requestAnimationFrame(() => { if (latest) redraw(); });
}).observe(document.querySelector("main"));

// The connection --------------------------------------------------------------------------------------

const KEY = "cbrank token";
const STALE = 6000; // milliseconds after which numbers are called old
const SILENCE = 15000; // milliseconds without a byte after which a connection is given up
const address = new URL(location.href);
if (address.searchParams.has("token")) {
  sessionStorage.setItem(KEY, address.searchParams.get("token"));
  address.searchParams.delete("token");
  window.history.replaceState(null, "", address);
}

const state = (name, text) => {
  document.body.dataset.state = name;
  put(at("state"), text);
  document.title = `${latest ? latest.model : "A ranker that serves"}: ${name}`;
};
let wake = () => {};
const pause = milliseconds => new Promise(done => {
  const timer = setTimeout(done, milliseconds);
  wake = () => { clearTimeout(timer); done(); };
});
addEventListener("online", () => wake());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  wake();
  if (latest) redraw();
});

const asked = why => new Promise(done => {
  const form = at("ask"), field = at("token");
  sessionStorage.removeItem(KEY);
  put(at("why"), why);
  state("waiting", "Not connected.");
  form.hidden = false;
  field.focus();
  form.onsubmit = event => {
    event.preventDefault();
    sessionStorage.setItem(KEY, field.value.trim());
    field.value = "";
    form.hidden = true;
    done();
  };
});

const take = text => {
  const data = text.split("\n").filter(row => row.startsWith("data: ")).map(row => row.slice(6)).join("\n");
  if (!data) return;
  show(JSON.parse(data));
  last = new Date();
  if (document.body.dataset.state !== "live") state("live", "Live: renewed every second.");
};
// Read events until the connection ends. EventSource would give up on some answers without saying which,
// and would need the token in the address.
const listen = async () => {
  const control = new AbortController(), token = sessionStorage.getItem(KEY);
  let timer = setTimeout(() => control.abort(), SILENCE);
  try {
    const headers = { Accept: "text/event-stream", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const response = await fetch("events", { headers, cache: "no-store", signal: control.signal });
    if (!response.ok) {
      const answer = await response.json().catch(() => ({}));
      return { status: response.status, why: answer.error ?? `The server answers ${response.status}.`, after: Number(response.headers.get("Retry-After")) };
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reader.read();
      if (done) return { status: 200 };
      clearTimeout(timer);
      timer = setTimeout(() => control.abort(), SILENCE);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      parts.forEach(take);
    }
  } finally {
    clearTimeout(timer);
    control.abort();
  }
};
setInterval(() => { // connected, and yet without news: the server is busy or stuck
  if (document.body.dataset.state === "live" && Date.now() - last > STALE)
    state("late", `No news for a while. The numbers are those of ${clock.format(last)}.`);
}, 1000);
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
for (let tries = 0; ;) {
  const began = Date.now();
  const end = await listen().catch(() => ({ status: 0, why: "" }));
  if (end.status === 401 || end.status === 403) {
    await asked(end.status === 403 || sessionStorage.getItem(KEY) ? end.why : "");
    state("connecting", "Connecting…");
    continue;
  }
  tries = Date.now() - began > 5000 ? 0 : tries + 1;
  if (end.status !== 200 || tries > 1) {
    for (const values of traces.values()) values.push(null);
    const numbers = last ? ` The numbers are those of ${clock.format(last)}.` : "";
    state("lost", `${last ? "Connection lost." : "No connection."}${numbers} Trying again… ${end.why ?? ""}`.trim());
  }
  await pause(end.after > 0 ? 1000 * end.after : Math.min(10000, 250 * 2 ** tries));
}
