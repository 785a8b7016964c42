// Moves the pictures of an explanation through the steps of the reasoning. `root` holds what fragment.py wrote, `data`
// for each view its nodes, edges and the edges of each path; the words, names and colours of each time.
const STEP_MILLISECONDS = 1700;
const MOST_LINES_BY_KEY = 40; // that the Tab key visits on its way to the nodes
const MOST_TOLD = 4; // facts beside the strongest of a line
const SEEN = 0.005; // parts of the attention below do not bring out a label
const MOST_MOVING = 60; // lines that show moving dots at once; more would be neither quick nor readable

export function percent(part) {
  if (part > 0 && part < 0.005) return "<1%";
  return part >= 0.995 && part < 0.9995 ? ">99%" : `${Math.round(part * 100)}%`;
}

function made(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

// A bar for each time, from the time `first` on.
export function fillBars(list, values, first, colours) {
  const highest = Math.max(...values, 1e-9);
  values.forEach((value, at) => {
    const item = made("li"), bar = made("i");
    bar.style.height = `${(2.2 * value) / highest}rem`;
    bar.style.background = colours[at + first];
    item.dataset.t = at + first;
    item.append(made("span", percent(value)), bar, made("b", `${first ? "step" : "t ="} ${at + first}`));
    list.append(item);
  });
  return list;
}

// Options: the view and the time to begin with (null: all steps at once); `onChange` hears of others that were chosen,
// `onMissing` of a view that is not there yet, `onNode` of a node that was chosen.
export function makePlayer(root, data, { view: firstView = "pruned", t: firstT = null, ...hears } = {}) {
  const { onChange = () => {}, onMissing = () => {}, onNode = null } = hears;
  const one = (selector) => root.querySelector(selector), every = (selector) => [...root.querySelectorAll(selector)];
  const slider = one("#step"), told = one("#told"), detail = one("#detail"), play = one("#play");
  const ending = new AbortController(), { signal } = ending;
  const state = { t: firstT, view: "pruned", path: null, timer: null }; // t is null while all steps are shown at once
  const views = Object.fromEntries(Object.keys(data.views).map((name) => [name, viewOf(name)]));

  function viewOf(name) {
    const figure = one(`figure[data-view=${name}]`);
    const all = (selector) => [...figure.querySelectorAll(selector)];
    const places = (element) => element.dataset.edges.split(" ").map(Number);
    return {
      figure,
      stage: figure.querySelector(".stage"),
      ...data.views[name],
      edges: data.views[name].edges.map(([source, target, relation, inverse, ...flow]) =>
        ({ source, target, relation, inverse, flow })),
      discs: all(".node").map((group) => ({ group, circle: group.querySelector("circle"), place: +group.dataset.node })),
      lines: all(".edge").map((group) => ({ group, line: group.querySelector(".line"), places: places(group) })),
      nodeLabels: all(".node-label").map((group) => ({ group, place: +group.dataset.node })),
      edgeLabels: all(".edge-label").map((group) => ({ group, places: places(group) })),
    };
  }

  const colourAt = (t, strength) => `color-mix(in oklab, var(--quiet), ${data.colours[t]} ${Math.round(strength * 100)}%)`;
  // How strong a colour is: beside the most there is at this time, and raised so that little is seen too.
  const part = (amount, most) => (most > 0 ? (amount / most) ** 0.33 : 0);

  // ---- The picture at a time

  function show(t) {
    state.t = t;
    const view = views[state.view];
    view.stage.classList.toggle("moves", t !== null);
    for (const sign of view.stage.querySelectorAll(".dots, .tip")) sign.remove();
    view.most = t === null ? 0 : Math.max(...view.nodes.map(({ attention }) => attention[t]));
    view.mostFlow = Math.max(...view.lines.map(({ places }) => flowOf(view, places)), 0);
    view.discs.forEach((disc) => showDisc(view, disc));
    const flows = view.lines.map((line) => showLine(view, line));
    if (t !== null) {
      showMoving(flows);
      bringIntoSight(view);
    }
    for (const label of view.nodeLabels) {
      const isEnd = label.place === view.head || label.place === view.answer;
      label.group.style.opacity = t === null || isEnd || attentionNow(view.nodes, label) > SEEN ? "" : 0.35;
    }
    for (const { group, places } of view.edgeLabels)
      group.style.opacity = t === null || flowOf(view, places) > SEEN ? "" : 0.15;
    slider.value = t ?? 0;
    slider.setAttribute("aria-valuetext", t === null ? "all steps at once" : `step ${t} of ${data.steps}`);
    one("#whole").setAttribute("aria-pressed", t === null);
    const words = t === null ? data.overview : data.told[t];
    if (told.textContent !== words) told.textContent = words;
    mark(one("#gained"), t);
    mark(one(".steps"), t);
    mark(detail.querySelector(".bars"), t);
  }

  // On a narrow screen the picture is wider than what is seen of it.
  function bringIntoSight({ stage, discs, nodes }) {
    const most = discs.reduce((one, other) => (attentionNow(nodes, other) > attentionNow(nodes, one) ? other : one));
    const middle = most.circle.getBoundingClientRect().x - stage.getBoundingClientRect().x + stage.scrollLeft;
    stage.scrollTo({ left: middle - stage.clientWidth / 2 });
  }
  const attentionNow = (nodes, { place }) => nodes[place].attention[state.t];

  function showDisc(view, disc) {
    const { style } = disc.circle, attention = attentionNow(view.nodes, disc);
    style.r = state.t === null ? "" : `${2.5 + 12.5 * Math.sqrt(attention)}px`;
    style.fill = state.t === null ? "" : colourAt(state.t, part(attention, view.most));
  }

  const flowOf = (view, places) => (state.t ? places.reduce((sum, at) => sum + view.edges[at].flow[state.t - 1], 0) : 0);

  function showLine(view, { group, line, places }) {
    if (state.t === null) {
      line.style.strokeWidth = line.style.stroke = group.style.opacity = "";
      return null;
    }
    const flow = flowOf(view, places);
    line.style.strokeWidth = `${flow ? 1 + 8 * Math.sqrt(flow) : 0.8}px`;
    line.style.stroke = colourAt(state.t, part(flow, view.mostFlow));
    group.style.opacity = 0.4 + 0.6 * part(flow, view.mostFlow);
    return { view, line, places, flow };
  }

  // Dots that move along the strongest lines, the way the attention went, and a tip that points there.
  function showMoving(flows) {
    const strongest = flows.filter(({ flow }) => flow > 0.003).sort((one, other) => other.flow - one.flow);
    for (const { view, line, places, flow } of strongest.slice(0, MOST_MOVING)) {
      const back = isBackwards(view, line, places), width = 1 + 8 * Math.sqrt(flow);
      const dots = line.cloneNode(false);
      dots.setAttribute("class", back ? "dots back" : "dots");
      dots.removeAttribute("style");
      dots.style.strokeWidth = `${0.6 + width / 2}px`;
      line.after(dots, tipOf(line, back, width));
    }
  }

  function tipOf(line, back, width) {
    const tip = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const length = line.getTotalLength(), at = length * (back ? 0.25 : 0.75), ahead = back ? -1 : 1;
    const { x, y } = line.getPointAtLength(at), next = line.getPointAtLength(at + ahead);
    const turned = (Math.atan2(next.y - y, next.x - x) * 180) / Math.PI, size = 2.5 + width;
    tip.setAttribute("class", "tip");
    tip.setAttribute("d", `M${-size},${-0.8 * size}L${size},0L${-size},${0.8 * size}Z`);
    tip.setAttribute("transform", `translate(${x},${y}) rotate(${turned})`);
    tip.style.fill = line.style.stroke;
    return tip;
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

  function tell(title, lines, values, first) {
    const bars = fillBars(made("ol", "", "bars"), values, first, data.colours);
    mark(bars, state.t);
    detail.replaceChildren(made("h3", title), ...lines.map((line) => made("p", line, "small")), bars);
  }

  function tellNode(view, place) {
    const { label, name, attention } = view.nodes[place];
    const role = place === view.head ? "where the question starts" : place === view.answer ? "the answer" : "";
    const more = [name === label || label.endsWith(`(${name})`) ? "" : name, role, "attention at each time:"].filter(Boolean).join("; ");
    tell(label, [more], attention, 0);
  }

  function tellEdges(view, places) {
    const total = (at) => view.edges[at].flow.reduce((sum, flow) => sum + flow, 0);
    const [strongest, ...others] = [...places].sort((one, other) => total(other) - total(one));
    const sums = view.edges[strongest].flow.map((_, t) => places.reduce((sum, at) => sum + view.edges[at].flow[t], 0));
    const lines = others.slice(0, MOST_TOLD).map((at) => `and ${factOf(view, at)}, ${wayOf(view, at)}`);
    if (others.length > MOST_TOLD) lines.push(`and ${others.length - MOST_TOLD} more`);
    const along = others.length ? "all of them" : "it";
    tell(factOf(view, strongest), [wayOf(view, strongest), ...lines, `flow along ${along} at each step:`], sums, 1);
  }

  const wayOf = (view, at) => `from ${view.nodes[view.edges[at].source].label} to ${view.nodes[view.edges[at].target].label}`;

  function factOf(view, at) {
    const { source, target, relation, inverse } = view.edges[at];
    const [head, tail] = inverse ? [target, source] : [source, target];
    return `${view.nodes[head].label} ${data.relations[relation]} ${view.nodes[tail].label}`;
  }

  function makeTouchable(group, label, onShow, also = [], byKey = true) {
    const shown = () => {
      every(".shown").forEach((other) => other.classList.remove("shown"));
      group.classList.add("shown");
      onShow();
    };
    group.setAttribute("tabindex", byKey ? "0" : "-1");
    group.setAttribute("role", "img");
    group.setAttribute("aria-label", label);
    for (const event of ["pointerenter", "focus", "click"])
      for (const element of [group, ...also]) element.addEventListener(event, shown);
  }

  function makeButton(group, also, onPress) {
    group.setAttribute("role", "button");
    for (const element of [group, ...also]) element.addEventListener("click", onPress);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      onPress();
    });
  }

  // ---- Paths, views and playing

  function choosePath(path) {
    state.path = state.path === path ? null : path;
    for (const button of every("[data-path]"))
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
    if (!views[name]) return onMissing(name);
    showView(name);
    onChange(state);
  }

  function showView(name) {
    state.view = name;
    for (const [other, view] of Object.entries(views)) view.figure.hidden = other !== name;
    for (const button of every("button[data-view]"))
      button.setAttribute("aria-pressed", button.dataset.view === name);
    show(state.t);
  }

  function pause() {
    clearInterval(state.timer);
    state.timer = null;
    play.textContent = "Play";
  }

  function start() {
    change(state.t === null || state.t === data.steps ? 0 : state.t);
    play.textContent = "Pause";
    state.timer = setInterval(() => {
      change(state.t + 1);
      if (state.t === data.steps) pause();
    }, STEP_MILLISECONDS);
  }

  const toggle = () => (state.timer === null ? start() : pause());

  function goTo(t) {
    pause();
    change(t === null ? null : Math.max(0, Math.min(data.steps, t)));
  }

  function change(t) {
    const isOther = t !== state.t;
    show(t);
    if (isOther) onChange(state);
  }

  // The place a node has at all times, so that lines do not end in nothing while it is small.
  function addSeat(view, { circle, place }) {
    const seat = circle.cloneNode(false);
    seat.setAttribute("class", "seat");
    const isEnd = place === view.head || place === view.answer;
    seat.style.stroke = isEnd ? circle.getAttribute("fill") : "var(--quiet)";
    if (isEnd) seat.style.strokeWidth = "2.5px";
    circle.before(seat);
  }

  // A line is thin: what is near it counts as on it.
  function addHit(line) {
    const hit = line.cloneNode(false);
    hit.setAttribute("class", "hit");
    line.before(hit);
  }

  function connect() {
    slider.style.setProperty("--times", data.steps + 1); // its stops stand below the bars
    one(".reasoning .skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address stays as it is
      slider.focus();
    });
    slider.addEventListener("input", () => goTo(+slider.value));
    slider.addEventListener("pointerdown", () => goTo(+slider.value));
    slider.addEventListener("keydown", (event) => {
      if (state.t !== null || !/^(Arrow|Home)/.test(event.key)) return;
      event.preventDefault(); // the first key leads from all steps at once to the beginning
      goTo(0);
    });
    play.addEventListener("click", toggle);
    one("#previous").addEventListener("click", () => goTo((state.t ?? 1) - 1));
    one("#next").addEventListener("click", () => goTo(state.t === null ? 0 : state.t + 1));
    one("#whole").addEventListener("click", () => goTo(null));
    root.addEventListener("keydown", (event) => {
      const hasUse = "button, summary, a, input:not([type=range]), [role=button]"; // for the key
      if (event.key !== " " || event.target.closest(hasUse)) return;
      event.preventDefault();
      toggle();
    }, { signal });
    for (const button of every("button[data-view]"))
      button.addEventListener("click", () => chooseView(button.dataset.view));
    for (const button of every("[data-path]"))
      button.addEventListener("click", () => choosePath(+button.dataset.path));
    for (const view of Object.values(views)) {
      for (const disc of view.discs) {
        const { group, place } = disc;
        const labels = view.nodeLabels.filter((label) => label.place === place).map((label) => label.group);
        addSeat(view, disc);
        makeTouchable(group, view.nodes[place].label, () => tellNode(view, place), labels);
        if (onNode) makeButton(group, labels, () => onNode(state.view, place, group));
      }
      for (const { group, line, places } of view.lines) {
        addHit(line);
        const label = places.map((at) => factOf(view, at)).join("; "), isFew = view.lines.length <= MOST_LINES_BY_KEY;
        makeTouchable(group, label, () => tellEdges(view, places), [], isFew);
      }
    }
    window.addEventListener("beforeprint", () => goTo(null), { signal });
  }

  function end() {
    clearInterval(state.timer);
    ending.abort();
  }

  fillBars(one("#gained"), views.pruned.nodes[views.pruned.answer].attention, 0, data.colours);
  connect();
  for (const element of every(".views, .controls, #detail")) element.hidden = false;
  showView(views[firstView] ? firstView : "pruned");
  return { state, showView, show, choosePath, end };
}
