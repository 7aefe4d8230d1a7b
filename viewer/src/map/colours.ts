// Colours of the map, for light and dark pages. All have a contrast of at least 3:1 with the page, and
// are distinguished by readers with any of the three kinds of colour blindness (see colours.test.ts).

export type Rgb = [number, number, number];
export type ThemeName = "light" | "dark";
export type ColourBy = "trees" | "utilisation" | "waiting" | "queue";

export interface Theme {
  page: Rgb;
  ink: Rgb;
  faint: Rgb;
  cable: Rgb;
  idle: Rgb;
  switch: Rgb;
  /** Marks what is selected. */
  accent: Rgb;
  trees: Rgb[];
  otherTrees: Rgb;
  /** From nothing to all, by measure. */
  ramps: Record<Exclude<ColourBy, "trees">, Rgb[]>;
  lines: string[];
}

export const rgb = (text: string): Rgb =>
  [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)) as Rgb;

export const css = (colour: Rgb): string =>
  "#" + colour.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("");

export const THEMES: Record<ThemeName, Theme> = {
  light: {
    page: rgb("#ffffff"),
    ink: rgb("#1c2733"),
    faint: rgb("#5b6773"),
    cable: rgb("#b4bcc4"),
    idle: rgb("#a9b2bb"),
    switch: rgb("#7d8893"),
    accent: rgb("#000000"),
    trees: [
      "#c2496a",
      "#33228a",
      "#b07a00",
      "#0f6b33",
      "#4296c8",
      "#7a1f52",
      "#1f8474",
      "#6f6f12",
    ].map(rgb),
    otherTrees: rgb("#555f69"),
    ramps: {
      utilisation: ["#d3dae1", "#86b1d1", "#2f74ad", "#0a2c57"].map(rgb),
      waiting: ["#e2dcd4", "#e3ac66", "#b8601a", "#532200"].map(rgb),
      queue: ["#dedbe3", "#b79acb", "#80499f", "#37084f"].map(rgb),
    },
    lines: ["#0072b2", "#d55e00", "#007a5a", "#a64d84", "#7a35d8", "#1c2733"],
  },
  dark: {
    page: rgb("#12171d"),
    ink: rgb("#e8edf2"),
    faint: rgb("#9fabb7"),
    cable: rgb("#48535e"),
    idle: rgb("#566270"),
    switch: rgb("#8793a0"),
    accent: rgb("#ffffff"),
    trees: [
      "#f0899b",
      "#8f7dff",
      "#f0c95a",
      "#4fae6c",
      "#8fd3f5",
      "#cf5fa5",
      "#54cdb9",
      "#b3b343",
    ].map(rgb),
    otherTrees: rgb("#a7b0b9"),
    ramps: {
      utilisation: ["#36414c", "#3f77a6", "#74b6e8", "#e9f5ff"].map(rgb),
      waiting: ["#433a32", "#a2682a", "#eda54c", "#fff2d8"].map(rgb),
      queue: ["#3d3645", "#80569a", "#c294dc", "#f8eaff"].map(rgb),
    },
    lines: ["#5ab4f0", "#ff9b54", "#4fd0a5", "#e59cc9", "#e6c84f", "#e8edf2"],
  },
};

export const mixed = (from: Rgb, to: Rgb, share: number): Rgb =>
  from.map((value, index) => value + share * (to[index] - value)) as Rgb;

export function onRamp(ramp: Rgb[], share: number): Rgb {
  const place = Math.min(1, Math.max(0, share)) * (ramp.length - 1);
  const below = Math.min(ramp.length - 2, Math.floor(place));
  const part = place - below;
  return mixed(ramp[below], ramp[below + 1], part);
}
