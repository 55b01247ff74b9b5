/** What we write, so that nothing in it is markup of Slack's: no text of a model mentions a person, a group or everybody. */

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

export const escapeText = (plain: string): string => plain.replaceAll(/[&<>]/g, (character) => ESCAPES[character] ?? character)
