"use strict";
// Moves the pictures of the page through the steps of the reasoning. What it shows is in the JSON block "data":
// for each view its nodes, edges and the edges of each path; the words, names and colours of each time.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const slider = byId("step"), told = byId("told"), detail = byId("detail"), play = byId("play");
const STEP_MILLISECONDS = 1700;
const MOST_MOVING = 60; // lines that show moving dots at once; more would be neither quick nor readable

const state = { t: null, view: "pruned", path: null, timer: null }; // t is null while all steps are shown at once
const views = { pruned: viewOf("pruned"), full: viewOf("full") };

function viewOf(name) {
  const figure = document.querySelector(`figure[data-view=${name}]`);
  const all = (selector) => [...figure.querySelectorAll(selector)];
  const places = (element) => element.dataset.edges.split(" ").map(Number);
  return {
    figure,
    stage: figure.querySelector(".stage"),
    ...data.views[name],
    discs: all(".node").map((group) => ({ group, circle: group.querySelector("circle"), place: +group.dataset.node })),
    lines: all(".edge").map((group) => ({ group, line: group.querySelector(".line"), places: places(group) })),
    nodeLabels: all(".node-label").map((group) => ({ group, place: +group.dataset.node })),
    edgeLabels: all(".edge-label").map((group) => ({ group, places: places(group) })),
  };
}

const percent = (part) => (part > 0 && part < 0.005 ? "<1%" : `${Math.round(part * 100)}%`);
const colourAt = (t, strength) => `color-mix(in oklab, var(--quiet), ${data.colours[t]} ${Math.round(strength * 100)}%)`;
const strengthOf = (amount) => Math.min(1, 1.15 * amount ** 0.35);

function made(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

// ---- The picture at a time

function show(t) {
  state.t = t;
  const view = views[state.view];
  view.stage.classList.toggle("moves", t !== null);
  for (const flow of view.stage.querySelectorAll(".flow")) flow.remove();
  view.discs.forEach((disc) => showDisc(view, disc));
  const flows = view.lines.map((line) => showLine(view, line));
  if (t !== null) showMoving(flows);
  view.nodeLabels.forEach(({ group, place }) => fade(group, labelOpacity(view, place)));
  view.edgeLabels.forEach(({ group, places }) => fade(group, t === null || flowOf(view, places) > 0.005 ? 1 : 0.25));
  slider.value = t ?? 0;
  slider.setAttribute("aria-valuetext", t === null ? "all steps at once" : `step ${t} of ${data.steps}`);
  byId("whole").setAttribute("aria-pressed", t === null);
  const words = t === null ? data.overview : data.told[t];
  if (told.textContent !== words) told.textContent = words;
  mark(byId("gained"), t);
  mark(document.querySelector(".steps"), t);
  mark(detail.querySelector(".bars"), t);
}

function fade(element, opacity) {
  element.style.opacity = opacity === 1 ? "" : opacity;
}

function showDisc(view, { circle, place }) {
  const { t } = state;
  if (t === null) {
    circle.style.r = circle.style.fill = "";
    return;
  }
  const attention = view.nodes[place].attention[t];
  circle.style.r = `${view.unit * (0.35 + 1.9 * Math.sqrt(attention))}px`;
  circle.style.fill = colourAt(t, strengthOf(attention));
}

function labelOpacity(view, place) {
  const { label, attention } = view.nodes[place];
  return state.t === null || place === view.head || place === view.answer || attention[state.t] > 0.005 ? 1 : 0.3;
}

const flowOf = (view, places) => (state.t ? places.reduce((sum, at) => sum + view.edges[at].flow[state.t - 1], 0) : 0);

function showLine(view, { group, line, places }) {
  const { t } = state;
  if (t === null) {
    line.style.strokeWidth = line.style.stroke = group.style.opacity = "";
    return null;
  }
  const flow = flowOf(view, places);
  line.style.strokeWidth = `${view.unit * (0.06 + 0.7 * Math.sqrt(flow))}px`;
  line.style.stroke = colourAt(t, flow ? strengthOf(flow) : 0);
  group.style.opacity = flow ? 0.35 + 0.65 * strengthOf(flow) : 0.35;
  return { view, line, places, flow };
}

// Dots that move along the strongest lines, the way the attention went.
function showMoving(flows) {
  const strongest = flows.filter(({ flow }) => flow > 0.003).sort((one, other) => other.flow - one.flow);
  for (const { view, line, places, flow } of strongest.slice(0, MOST_MOVING)) {
    const dots = line.cloneNode(false);
    dots.setAttribute("class", "flow");
    dots.removeAttribute("style");
    dots.style.stroke = "var(--ink)";
    dots.style.strokeWidth = `${view.unit * (0.1 + 0.35 * Math.sqrt(flow))}px`;
    dots.classList.toggle("back", isBackwards(view, line, places));
    line.after(dots);
  }
}

function isBackwards(view, line, places) {
  const strongest = places.reduce((one, other) =>
    view.edges[other].flow[state.t - 1] > view.edges[one].flow[state.t - 1] ? other : one);
  const start = line.getPointAtLength(0);
  const far = (place) => {
    const { circle } = view.discs.find((disc) => disc.place === place);
    return Math.hypot(start.x - circle.getAttribute("cx"), start.y - circle.getAttribute("cy"));
  };
  return far(view.edges[strongest].source) > far(view.edges[strongest].target);
}

function mark(list, t) {
  [...(list?.children ?? [])].forEach((item) => {
    if (t !== null && +item.dataset.t === t) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  });
}

// ---- Bars and details

function fillBars(list, values, first) {
  const highest = Math.max(...values, 1e-9);
  values.forEach((value, at) => {
    const item = made("li"), bar = made("i");
    bar.style.height = `${(2.2 * value) / highest}rem`;
    bar.style.background = data.colours[at + first];
    item.dataset.t = at + first;
    item.append(made("span", percent(value)), bar, made("b", `t = ${at + first}`));
    list.append(item);
  });
  mark(list, state.t);
  return list;
}

function tell(title, lines, values, first) {
  const bars = fillBars(made("ol", "", "bars"), values, first);
  detail.replaceChildren(made("h3", title), ...lines.map((line) => made("p", line, "small")), bars);
  detail.hidden = false;
}

function tellNode(view, place) {
  const { label, name, attention } = view.nodes[place];
  const role = place === view.head ? "what the question starts from" : place === view.answer ? "the answer" : "";
  const more = [name === label ? "" : name, role, "attention at each time:"].filter(Boolean).join("; ");
  tell(label, [more], attention, 0);
}

function tellEdges(view, places) {
  const total = (at) => view.edges[at].flow.reduce((sum, flow) => sum + flow, 0);
  const strongest = [...places].sort((one, other) => total(other) - total(one));
  const sums = view.edges[places[0]].flow.map((_, t) => places.reduce((sum, at) => sum + view.edges[at].flow[t], 0));
  const lines = strongest.slice(1, 6).map((at) => `${factOf(view, at)}: ${flowsOf(view.edges[at])}`);
  if (strongest.length > 1) lines.unshift(flowsOf(view.edges[strongest[0]]));
  if (strongest.length > 6) lines.push(`and ${strongest.length - 6} more`);
  const { source, target } = view.edges[strongest[0]];
  lines.push(`Attention that went along ${places.length > 1 ? "all of them" : "it"} at each step,` +
    ` from ${view.nodes[source].label} to ${view.nodes[target].label}${bothWays(view, places) ? " and back" : ""}:`);
  tell(factOf(view, strongest[0]), lines, sums, 1);
}

const flowsOf = (edge) => `flow ${edge.flow.map(percent).join(", ")}`;
const bothWays = (view, places) => new Set(places.map((at) => view.edges[at].source)).size > 1;

function factOf(view, at) {
  const { source, target, relation, inverse } = view.edges[at];
  const [head, tail] = inverse ? [target, source] : [source, target];
  return `${view.nodes[head].label} ${data.relations[relation]} ${view.nodes[tail].label}`;
}

function makeTouchable(view, group, label, onShow) {
  const shown = () => {
    document.querySelectorAll(".shown").forEach((other) => other.classList.remove("shown"));
    group.classList.add("shown");
    onShow();
  };
  group.setAttribute("tabindex", "0");
  group.setAttribute("role", "img");
  group.setAttribute("aria-label", label);
  for (const event of ["pointerenter", "focus", "click"]) group.addEventListener(event, shown);
}

// ---- Paths, views and playing

function choosePath(path) {
  state.path = state.path === path ? null : path;
  for (const button of document.querySelectorAll("[data-path]"))
    button.setAttribute("aria-pressed", +button.dataset.path === state.path);
  for (const view of Object.values(views)) {
    const edges = new Set(state.path === null ? [] : view.paths[state.path]);
    const nodes = new Set([...edges].flatMap((at) => [view.edges[at].source, view.edges[at].target]));
    view.stage.classList.toggle("path", state.path !== null);
    for (const { group, place } of [...view.discs, ...view.nodeLabels]) group.classList.toggle("on", nodes.has(place));
    for (const { group, places } of [...view.lines, ...view.edgeLabels])
      group.classList.toggle("on", places.some((at) => edges.has(at)));
  }
}

function chooseView(name) {
  state.view = name;
  for (const [other, view] of Object.entries(views)) view.figure.hidden = other !== name;
  for (const button of document.querySelectorAll("button[data-view]"))
    button.setAttribute("aria-pressed", button.dataset.view === name);
  show(state.t);
}

function pause() {
  clearInterval(state.timer);
  state.timer = null;
  play.textContent = "Play";
}

function start() {
  show(state.t === null || state.t === data.steps ? 0 : state.t);
  play.textContent = "Pause";
  state.timer = setInterval(() => {
    show(state.t + 1);
    if (state.t === data.steps) pause();
  }, STEP_MILLISECONDS);
}

const toggle = () => (state.timer === null ? start() : pause());

function goTo(t) {
  pause();
  show(t === null ? null : Math.max(0, Math.min(data.steps, t)));
}

function isForPlaying(event) {
  return event.key === " " && !event.target.closest("button, summary, a, input:not([type=range])");
}

function connect() {
  slider.addEventListener("input", () => goTo(+slider.value));
  slider.addEventListener("pointerdown", () => goTo(+slider.value));
  slider.addEventListener("keydown", (event) => {
    if (state.t !== null || !/^(Arrow|Home)/.test(event.key)) return;
    event.preventDefault(); // the first key leads from all steps at once to the beginning
    goTo(0);
  });
  play.addEventListener("click", toggle);
  byId("previous").addEventListener("click", () => goTo((state.t ?? 1) - 1));
  byId("next").addEventListener("click", () => goTo(state.t === null ? 0 : state.t + 1));
  byId("whole").addEventListener("click", () => goTo(null));
  document.addEventListener("keydown", (event) => {
    if (!isForPlaying(event)) return;
    event.preventDefault();
    toggle();
  });
  for (const button of document.querySelectorAll("button[data-view]"))
    button.addEventListener("click", () => chooseView(button.dataset.view));
  for (const button of document.querySelectorAll("[data-path]"))
    button.addEventListener("click", () => choosePath(+button.dataset.path));
  for (const view of Object.values(views)) {
    for (const { group, place } of view.discs)
      makeTouchable(view, group, view.nodes[place].label, () => tellNode(view, place));
    for (const { group, places } of view.lines)
      makeTouchable(view, group, places.map((at) => factOf(view, at)).join("; "), () => tellEdges(view, places));
  }
  window.addEventListener("beforeprint", () => goTo(null));
}

fillBars(byId("gained"), views.pruned.nodes[views.pruned.answer].attention, 0);
connect();
for (const element of document.querySelectorAll(".views, .controls")) element.hidden = false;
chooseView("pruned");
