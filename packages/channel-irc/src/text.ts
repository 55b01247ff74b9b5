/** The text of messages: formatting codes, mentions of the bot, and the split of a reply into lines. */
import { splitText } from '@sluice/kit'
import { folded } from './wire.ts'

/** A control character, and what may be the number of a colour after it. */
const CONTROL = /(\p{Cc})([\dA-Fa-f,]{0,6})/gu
const [COLOUR, HEX_COLOUR] = ['\x03', '\x04']
const NICK_CHARACTER = /[A-Za-z0-9[\]\\`_^{|}-]/

/** Returns the text as people see it: without the codes of https://modern.ircdocs.horse/formatting and other control characters. */
export const plainText = (text: string): string =>
  text
    .replaceAll(CONTROL, (_, control: string, after: string) => {
      if (control === COLOUR) return after.replace(/^\d{1,2}(?:,\d{1,2})?/, '')
      if (control === HEX_COLOUR) return after.replace(/^[\dA-Fa-f]{6}/, '')
      return (control === '\t' ? control : '') + after
    })
    .trim()

/** Returns whether the text has the nick as a word of its own. */
export function mentions(text: string, nick: string): boolean {
  const [all, word] = [folded(text), folded(nick)]
  for (let at = all.indexOf(word); at !== -1; at = all.indexOf(word, at + 1)) {
    const isWord = !NICK_CHARACTER.test(all[at - 1] ?? ' ') && !NICK_CHARACTER.test(all[at + word.length] ?? ' ')
    if (isWord) return true
  }
  return false
}

/** Removes the nick from the beginning of a text that addresses it, as in `sluice: hello`. */
export function withoutAddress(text: string, nick: string): string {
  if (folded(text.slice(0, nick.length)) !== folded(nick)) return text
  const rest = text.slice(nick.length)
  return /^[:,]/.test(rest) ? rest.slice(1).trim() : text
}

/** Returns the lines of a reply, each of at most `bytesMax` bytes and none empty. Control characters are removed: one begins a CTCP request. */
export function linesOf(text: string, bytesMax: number): readonly string[] {
  return text
    .split(/[\r\n]/)
    .map((line) => line.replaceAll(/(?!\t)\p{Cc}/gu, '').trimEnd())
    .filter((line) => line.trim() !== '')
    .flatMap((line) => splitText(line, { text: bytesMax, unit: 'byte' }))
}
