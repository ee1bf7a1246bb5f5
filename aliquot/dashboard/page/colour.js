// A colour for each team: steady, by its place among all, alike in lightness, in dark and light.

const HUES = [255, 55, 155, 350, 300, 92, 200, 25, 130, 275, 325, 178];

export function fillOf(index, dark) {
  if (index < 0) return dark ? "#8a94a8" : "#8b94a6";
  const turn = Math.floor(index / HUES.length);
  const hue = (HUES[index % HUES.length] + turn * 13) % 360;
  const light = (dark ? 0.7 : 0.66) - (turn % 3) * 0.09;
  return `oklch(${light} 0.135 ${hue})`;
}

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
