/** The header of a mail: its fields in order, unfolded (RFC 5322, section 2.2). */
import type { Headers } from '@sluice/mail-common/reading'

const FIELD = /^([!-9;-~]{1,200})[ \t]*:(.*)$/s

/** Parses the bytes of a header. Skips lines of another form. */
export function parseHeaders(bytes: Uint8Array): Headers {
  const fields = new Map<string, string[]>()
  // No field is left out: a mail with a second sender below very many fields would seem to have one.
  for (const line of textOfHeader(bytes)
    .replace(/\r?\n(?=[ \t])/g, '')
    .split(/\r?\n/)) {
    const [, name = '', value = ''] = FIELD.exec(line) ?? []
    if (name === '') continue
    const key = name.toLowerCase()
    const values = fields.get(key)
    if (values) values.push(value.trim())
    else fields.set(key, [value.trim()])
  }
  return (name) => fields.get(name) ?? []
}

/** Headers are ASCII or UTF-8 (RFC 6532); bytes of another charset become one character each. */
function textOfHeader(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('latin1').decode(bytes)
  }
}
