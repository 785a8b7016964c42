// A text field that offers what could be meant, after the ARIA pattern: arrows move, Enter takes, Escape closes.
import { announce, count, made } from "./words.js";

const PAUSE = 120; // milliseconds without a key before the server is asked
const SLOW = 250; // milliseconds after which waiting is said

// `load(text, signal)` gives groups [{title, options: [{text, parts}]}] for what is typed; `onChoose` hears of the option
// that was taken, `onType` of every other change.
export function makeCombobox(input, { load, onChoose, nothing, onType = () => {}, debounce = PAUSE }) {
  const label = input.labels[0].textContent;
  const list = made("div", { role: "listbox", id: `${input.id}-list`, class: "listbox", "aria-label": label });
  const rows = []; // {element, option}
  let at = -1, timer, loading = new AbortController();
  list.hidden = true;
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox", autocomplete: "off", autocapitalize: "off",
    "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  })) input.setAttribute(name, value);

  function open() {
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  function close() {
    stop();
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    move(-1);
  }

  function stop() {
    clearTimeout(timer);
    loading.abort();
  }

  function move(to) {
    rows[at]?.element.setAttribute("aria-selected", "false");
    at = to;
    if (!rows[at]) return input.removeAttribute("aria-activedescendant");
    rows[at].element.setAttribute("aria-selected", "true");
    rows[at].element.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", rows[at].element.id);
  }

  function choose({ option }) {
    input.value = option.text;
    close();
    onChoose(option);
  }

  function showRows(groups) {
    rows.length = 0;
    list.replaceChildren(...groups.filter(({ options }) => options.length).map(groupOf));
    if (!rows.length) say(nothing(input.value.trim()));
    move(-1);
    open();
    announce(rows.length ? count(rows.length, "suggestion") : nothing(input.value.trim()));
  }

  function groupOf({ title, options }, place) {
    const id = `${list.id}-group-${place}`;
    const group = made("div", title ? { role: "group", "aria-labelledby": id } : { role: "presentation" });
    if (title) group.append(made("div", { class: "group-title", role: "presentation", id }, title));
    for (const option of options) {
      const attributes = { role: "option", id: `${list.id}-${rows.length}`, "aria-selected": "false" };
      const element = made("div", attributes, ...option.parts()), row = { element, option };
      element.addEventListener("click", () => choose(row));
      rows.push(row);
      group.append(element);
    }
    return group;
  }

  // A listbox holds options only: what is said is one that cannot be taken.
  function say(text) {
    const attributes = { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "said" };
    list.replaceChildren(made("div", attributes, text));
    open();
  }

  async function refresh() {
    stop();
    const { signal } = (loading = new AbortController());
    const waiting = setTimeout(() => !signal.aborted && say("Searching…"), SLOW);
    try {
      const groups = await load(input.value.trim(), signal);
      if (!signal.aborted) showRows(groups);
    } catch (error) {
      if (!signal.aborted) {
        rows.length = 0;
        say(error.message);
      }
    } finally {
      clearTimeout(waiting);
    }
  }

  input.addEventListener("input", () => {
    onType();
    stop();
    timer = setTimeout(refresh, debounce);
  });
  input.addEventListener("click", () => list.hidden && refresh());
  input.addEventListener("blur", close);
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) return void refresh();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (rows.length) move(at < 0 && step < 0 ? rows.length - 1 : (at + step + rows.length) % rows.length);
    } else if (event.key === "Enter" && !list.hidden && rows[at]) {
      event.preventDefault(); // the next Enter asks
      choose(rows[at]);
    } else if (event.key === "Enter") close();
    else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });
  return { close, refresh };
}
