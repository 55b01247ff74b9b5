/**
 * Renders a tool call for the person who decides it. The text represents exactly one input: nothing is dropped, merged or reordered,
 * and every character that a screen would hide or move is escaped. Only configured secrets are masked.
 */
import { APPROVAL_MESSAGE_CHARS_MAX, type Secret, secretValues, sha256Hex } from '@sluice/sdk'

const MASK = '[redacted]'
/** Controls, bidirectional marks, invisible and unassigned characters, and every blank but the plain one. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu
/** Text that would end the code block in which a chat shows the call. */
const FENCE = /`{3,}/g
/** More blanks in a row could push text out of view. */
const LONG_GAP = /(?<= {8}) /g
const PLAIN_NAME = /^[A-Za-z0-9_.-]+$/

/** Returns the hash of the tool and its exact input. A decision applies only to this hash. */
export const callHash = (tool: string, input: unknown): string => sha256Hex(JSON.stringify([tool, input]))

/**
 * Returns one line `name: value` for each argument, in the order of the input. A text is shown unchanged where that is unambiguous,
 * else as a JSON string; any other value is JSON. Throws for an input that JSON cannot represent.
 */
export function shownCall(input: unknown, secrets: readonly Secret[]): string {
  const values = secretValues(secrets)
  const said: unknown = JSON.parse(JSON.stringify(input))
  if (typeof said !== 'object' || said === null || Array.isArray(said)) return shownValue(said, values)
  const lines = Object.entries(said).map(([name, value]) => `${shownName(name, values)}: ${shownValue(value, values)}`)
  return lines.join('\n')
}

/** Limits a text to the length of a prompt. A longer one shows its beginning, its end, its length and the hash of the call. */
export function boundedCall(text: string, hash: string, charsMax = APPROVAL_MESSAGE_CHARS_MAX): string {
  if (text.length <= charsMax) return text
  const note = (left: number): string =>
    `\n[Not shown whole: ${left} of ${text.length} characters are left out here. SHA-256 of the call: ${hash}]\n`
  const room = Math.max(0, charsMax - note(text.length).length)
  const head = Math.ceil((room * 2) / 3)
  const tail = text.length - (room - head)
  return `${text.slice(0, head).toWellFormed()}${note(tail - head)}${text.slice(tail).toWellFormed()}`
}

/** Shows a text of several lines with the same escapes and masks. */
export const shownText = (text: string, secrets: readonly Secret[]): string => {
  const values = secretValues(secrets)
  const shownLine = (line: string): string =>
    between(line, values)
      .map((piece) => piece.replace(HIDDEN, escaped).replace(FENCE, escaped).replace(LONG_GAP, escaped))
      .join(MASK)
  return text.split('\n').map(shownLine).join('\n')
}

const shownName = (name: string, secrets: readonly string[]): string => (PLAIN_NAME.test(name) ? name : literal(name, secrets))

function shownValue(value: unknown, secrets: readonly string[]): string {
  if (typeof value === 'string') return isPlain(value, secrets) ? between(value, secrets).join(MASK) : literal(value, secrets)
  return json(value, secrets)
}

function json(value: unknown, secrets: readonly string[]): string {
  if (typeof value === 'string') return literal(value, secrets)
  if (Array.isArray(value)) return `[${value.map((item) => json(item, secrets)).join(', ')}]`
  if (typeof value !== 'object' || value === null) return between(JSON.stringify(value), secrets).join(MASK)
  const members = Object.entries(value).map(([name, member]) => `${literal(name, secrets)}: ${json(member, secrets)}`)
  return `{${members.join(', ')}}`
}

/** Tells whether a text can be shown unchanged without ambiguity. */
function isPlain(text: string, secrets: readonly string[]): boolean {
  if (text === '' || text.trim() !== text || text.includes('  ') || text.startsWith('"') || isJson(text)) return false
  return between(text, secrets).every((piece) => piece.search(HIDDEN) < 0 && !piece.includes('```') && !piece.includes(MASK))
}

function isJson(text: string): boolean {
  if (!/^[[{\-\dtfn]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Returns a JSON string of visible characters and ASCII blanks in which only this function writes masks. */
const literal = (text: string, secrets: readonly string[]): string => `"${between(text, secrets).map(spelledOut).join(MASK)}"`

const spelledOut = (piece: string): string =>
  JSON.stringify(piece)
    .slice(1, -1)
    .replace(HIDDEN, escaped)
    .replace(FENCE, escaped)
    .replace(LONG_GAP, escaped)
    .replaceAll(MASK, (mask) => escaped('[') + mask.slice(1))

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** Splits a text at its secrets. A longer secret is found before a secret that it contains. */
const between = (text: string, secrets: readonly string[]): string[] =>
  secrets.reduce((pieces, secret) => pieces.flatMap((piece) => piece.split(secret)), [text])
