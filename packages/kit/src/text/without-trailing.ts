/** Removes a character from the end of a text. A pattern such as `/\/+$/` would take quadratic time on hostile text. */

/** Removes every `character` from the end of the text, in linear time. `character` is one UTF-16 unit. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}
