// Lets a picture be enlarged and moved: by wheel, fingers, mouse, buttons and keys.
import { button, made } from "./words.js";

const CLOSEST = 8;
const STEP = 1.4;
const MOVED = 5; // pixels that make a press a drag

export function makeZoom(figure) {
  const stage = figure.querySelector(".stage"), svg = stage.querySelector("svg");
  const { width, height } = svg.viewBox.baseVal;
  const seen = { x: 0, y: 0, width };
  const fingers = new Map();
  let dragged = false;

  const into = button(() => zoom(STEP), "+"), out = button(() => zoom(1 / STEP), "−");
  const whole = button(() => look(0, 0, width), "⤢");
  for (const [element, words] of [[into, "Zoom in"], [out, "Zoom out"], [whole, "Show the whole picture"]]) {
    element.setAttribute("aria-label", words);
    element.title = words;
  }
  figure.append(made("div", { class: "zoom", role: "group", "aria-label": "Zoom" }, into, out, whole));

  const within = (value, low, high) => Math.min(Math.max(value, low), high);

  function look(x, y, wide) {
    seen.width = within(wide, width / CLOSEST, width);
    const tall = (seen.width * height) / width;
    seen.x = within(x, 0, width - seen.width);
    seen.y = within(y, 0, height - tall);
    svg.setAttribute("viewBox", `${seen.x} ${seen.y} ${seen.width} ${tall}`);
    const isWhole = seen.width === width;
    stage.classList.toggle("zoomed", !isWhole);
    out.disabled = whole.disabled = isWhole;
    into.disabled = seen.width <= width / CLOSEST;
  }

  const middle = () => ({ x: seen.x + seen.width / 2, y: seen.y + (seen.width * height) / width / 2 });
  const pointAt = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

  // What is at the point stays where it is.
  function zoom(by, { x, y } = middle()) {
    const wide = within(seen.width / by, width / CLOSEST, width), part = wide / seen.width;
    look(x - (x - seen.x) * part, y - (y - seen.y) * part, wide);
  }

  const move = (x, y) => look(seen.x + x, seen.y + y, seen.width);

  stage.addEventListener("wheel", (event) => {
    // A wheel scrolls the page, unless the picture is meant: the key is held, or it has the focus.
    if (!event.ctrlKey && !event.metaKey && !stage.contains(document.activeElement)) return;
    if (!event.ctrlKey && event.deltaY > 0 && seen.width === width) return;
    event.preventDefault();
    zoom(Math.exp(-within(event.deltaY, -120, 120) / 240), pointAt(event));
  }, { passive: false });

  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    dragged = false;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, far: 0 });
  });
  stage.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const before = spread(), from = pointAt({ clientX: finger.x, clientY: finger.y }), to = pointAt(event);
    finger.far += Math.hypot(event.clientX - finger.x, event.clientY - finger.y);
    [finger.x, finger.y] = [event.clientX, event.clientY];
    if (finger.far > MOVED && !dragged) {
      dragged = true;
      stage.setPointerCapture(event.pointerId);
    }
    if (fingers.size === 2 && before) zoom(spread() / before, pointAt(between()));
    else if (dragged && seen.width < width) move(from.x - to.x, from.y - to.y);
  });
  for (const end of ["pointerup", "pointercancel"])
    stage.addEventListener(end, ({ pointerId }) => fingers.delete(pointerId));
  stage.addEventListener("click", (event) => dragged && event.stopPropagation(), { capture: true }); // it was no click

  function spread() {
    const [one, other] = [...fingers.values()];
    return other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
  }
  function between() {
    const [one, other] = [...fingers.values()];
    return { clientX: (one.x + other.x) / 2, clientY: (one.y + other.y) / 2 };
  }

  const keys = {
    "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP), 0: () => look(0, 0, width),
    ArrowLeft: () => move(-seen.width / 10, 0), ArrowRight: () => move(seen.width / 10, 0),
    ArrowUp: () => move(0, -seen.width / 10), ArrowDown: () => move(0, seen.width / 10),
  };
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    if (event.key.startsWith("Arrow") && seen.width === width) return;
    event.preventDefault();
    keys[event.key]();
  });
  look(0, 0, width);
}
