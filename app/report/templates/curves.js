"use strict";
// Curves that can be looked at closely: the wheel zooms in time, a drag shifts, a double click shows all.

/** The numbers of a curve: 16-bit words, little end first; the largest word is no number. */
function unpacked(curve) {
  const bytes = atob(curve.words), values = new Float64Array(bytes.length / 2);
  for (let k = 0; k < values.length; k++) {
    const word = bytes.charCodeAt(2 * k) + 256 * bytes.charCodeAt(2 * k + 1);
    values[k] = word === 65535 ? NaN : curve.low + word * curve.step;
  }
  return values;
}

/** The span [from, to] within `whole` after a zoom by `factor` about the moment `at`. */
function zoomed(span, whole, at, factor) {
  const least = 1e-4 * (whole[1] - whole[0]);
  const width = Math.min(Math.max((span[1] - span[0]) * factor, least), whole[1] - whole[0]);
  const share = (at - span[0]) / (span[1] - span[0]);
  return shifted([at - share * width, at + (1 - share) * width], whole, 0);
}

/** The span moved by `by`, but not beyond `whole`. */
function shifted(span, whole, by) {
  const width = span[1] - span[0];
  const from = Math.min(Math.max(span[0] + by, whole[0]), whole[1] - width);
  return [from, from + width];
}

/** Indices [first, last] of n numbers, evenly over `whole`, that a span shows, with a neighbour on each side. */
function shown(span, whole, n) {
  const per = (n - 1) / (whole[1] - whole[0]);
  return [Math.max(0, Math.floor((span[0] - whole[0]) * per)), Math.min(n - 1, Math.ceil((span[1] - whole[0]) * per))];
}

/** Round numbers between low and high, some `about` of them. */
function ticks(low, high, about) {
  const raw = (high - low) / about, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= raw * (1 - 1e-9)), found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return { step, found };
}

function words(value, step) {
  return value.toFixed(Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
}

if (typeof module !== "undefined") module.exports = { unpacked, zoomed, shifted, shown, ticks, words };

if (typeof document !== "undefined") {
  const LEFT = 58, RIGHT = 12, TOP = 24, BELOW = 24, HIGH = 190, all = [];
  const box = (k) => [TOP + k * (HIGH + TOP), TOP + k * (HIGH + TOP) + HIGH];

  function draw(plot) {
    const { canvas, data, span, whole } = plot, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight, g = canvas.getContext("2d");
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    g.scale(ratio, ratio);
    g.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    const x = (t) => LEFT + ((t - span[0]) / (span[1] - span[0])) * (width - LEFT - RIGHT);
    const marks = ticks(span[0], span[1], 8);
    data.panels.forEach((panel, p) => {
      const [top, bottom] = box(p);
      let low = Infinity, high = -Infinity;
      for (const curve of panel.curves) {
        const [first, last] = shown(span, whole, curve.values.length);
        for (let k = first; k <= last; k++) {
          if (curve.values[k] < low) low = curve.values[k];
          if (curve.values[k] > high) high = curve.values[k];
        }
      }
      if (!(high >= low)) { low = 0; high = 1; }
      const room = 0.06 * (high - low) || 0.5;
      low -= room;
      high += room;
      const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
      g.lineWidth = 1;
      g.strokeStyle = "#e6eaf0";
      g.fillStyle = "#5c6a7c";
      const rows = ticks(low, high, 5);
      g.textAlign = "right";
      g.textBaseline = "middle";
      for (const v of rows.found) {
        g.beginPath(); g.moveTo(LEFT, y(v)); g.lineTo(width - RIGHT, y(v)); g.stroke();
        g.fillText(words(v, rows.step), LEFT - 6, y(v));
      }
      g.textAlign = "center";
      g.textBaseline = "top";
      for (const t of marks.found) {
        g.beginPath(); g.moveTo(x(t), top); g.lineTo(x(t), bottom); g.stroke();
        if (p === data.panels.length - 1) g.fillText(words(t, marks.step) + " s", x(t), bottom + 5);
      }
      g.save();
      g.beginPath(); g.rect(LEFT, top, width - LEFT - RIGHT, bottom - top); g.clip();
      for (const curve of panel.curves) {
        const n = curve.values.length, [first, last] = shown(span, whole, n);
        g.strokeStyle = curve.colour;
        g.lineWidth = curve.dashed ? 0.9 : 1.4;
        g.setLineDash(curve.dashed ? [4, 3] : []);
        g.beginPath();
        let pen = false;
        for (let k = first; k <= last; k++) {
          const v = curve.values[k];
          if (v !== v) { pen = false; continue; }
          const at = x(whole[0] + (k / (n - 1)) * (whole[1] - whole[0]));
          if (pen) g.lineTo(at, y(v)); else g.moveTo(at, y(v));
          pen = true;
        }
        g.stroke();
      }
      g.setLineDash([]);
      if (plot.at !== null) {
        g.strokeStyle = "#8a97a8";
        g.lineWidth = 1;
        g.beginPath(); g.moveTo(x(plot.at), top); g.lineTo(x(plot.at), bottom); g.stroke();
      }
      g.restore();
      g.textAlign = "left";
      g.textBaseline = "alphabetic";
      g.fillStyle = "#263242";
      let left = LEFT;
      const head = panel.unit ? `${panel.title} [${panel.unit}]` : panel.title;
      g.fillText(head, left, top - 7);
      left += g.measureText(head).width + 18;
      for (const curve of panel.curves) {
        let said = curve.name;
        if (plot.at !== null) {
          const n = curve.values.length;
          const v = curve.values[Math.round(((plot.at - whole[0]) / (whole[1] - whole[0])) * (n - 1))];
          said += " " + (v === v ? v.toPrecision(3) : "–");
        }
        g.fillStyle = curve.colour;
        g.fillText(said, left, top - 7);
        left += g.measureText(said).width + 14;
      }
      if (plot.at !== null && p === 0) {
        const said = plot.at.toFixed(4) + " s";
        g.fillStyle = "#263242";
        const room = width - RIGHT - g.measureText(said).width - 4;
        g.fillText(said, Math.min(x(plot.at) + 4, room), bottom - 6);
      }
    });
  }

  /** Plots of one run share what part of it they show. */
  function turn(span, at) {
    for (const plot of all) {
      if (span) plot.span = span;
      plot.at = at;
      draw(plot);
    }
  }

  function start(element) {
    const data = JSON.parse(element.dataset.curves), whole = [data.from, data.to];
    for (const panel of data.panels) for (const curve of panel.curves) curve.values = unpacked(curve);
    const canvas = document.createElement("canvas");
    canvas.style.height = `${box(data.panels.length - 1)[1] + BELOW}px`;
    element.replaceChildren(canvas);
    const plot = { canvas, data, whole, span: whole, at: null };
    all.push(plot);
    const moment = (event) => {
      const share = (event.offsetX - LEFT) / (canvas.clientWidth - LEFT - RIGHT);
      return plot.span[0] + Math.min(Math.max(share, 0), 1) * (plot.span[1] - plot.span[0]);
    };
    let grasped = null;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      turn(zoomed(plot.span, whole, moment(event), Math.exp(0.0015 * event.deltaY)), moment(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      grasped = moment(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { grasped = null; });
    canvas.addEventListener("pointermove", (event) => {
      const span = grasped === null ? null : shifted(plot.span, whole, grasped - moment(event));
      turn(span, span === null ? moment(event) : grasped);
    });
    canvas.addEventListener("pointerleave", () => turn(null, null));
    canvas.addEventListener("dblclick", () => turn(whole, null));
    draw(plot);
  }

  document.querySelectorAll("[data-curves]").forEach(start);
  window.addEventListener("resize", () => all.forEach(draw));
}
