/** Reads JSON of unknown shape. Members that are missing or have another type read as empty; only a body that is not JSON throws. */
import { AppError } from '@sluice/sdk/webhook'

export type Members = Readonly<Record<string, unknown>>

const NONE: Members = Object.freeze({})
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Throws `invalid_request` for a body that is not JSON in UTF-8. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body))
  } catch {
    throw new AppError('invalid_request', 'Invalid JSON payload')
  }
}

/** Throws `invalid_request` for a body that is not a JSON object in UTF-8. */
export function parseObject(body: Uint8Array): Members {
  const json = parseJson(body)
  if (!isObject(json)) throw new AppError('invalid_request', 'Invalid JSON payload')
  return json
}

/** Returns undefined for text that is not JSON, which may occur inside other JSON or in the body of an error. */
export function parsedOrUndefined(json: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof json === 'string' ? json : utf8.decode(json))
  } catch {
    return undefined
  }
}

export const members = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : NONE)

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Returns the value at a path of object members, such as `message.text`. */
export const valueAt = (json: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), json)

/** Returns the first text at one of the paths that is not blank, else an empty text. */
export function textAt(json: unknown, ...paths: string[]): string {
  for (const path of paths) {
    const value = valueAt(json, path)
    if (typeof value === 'string' && value.trim() !== '') return value
  }
  return ''
}

/** The names under which platforms put the words of their contents. */
const WORDS = ['title', 'topic', 'summary', 'text', 'content', 'options', 'elements', 'name', 'body', 'header', 'file_name', 'note']
const WORDS_MAX = 500
const DEPTH_MAX = 12

/** Returns the words in the members of a content whose form is not known or differs from type to type, with spaces between. */
export function wordsIn(content: unknown): string {
  const found: string[] = []
  const visit = (value: unknown, depth: number): void => {
    if (found.length >= WORDS_MAX || depth > DEPTH_MAX) return
    if (typeof value === 'string') {
      if (value.trim() !== '') found.push(value.trim())
    } else if (Array.isArray(value)) for (const each of value) visit(each, depth + 1)
    else if (isObject(value)) for (const member of WORDS) visit(value[member], depth + 1)
  }
  if (isObject(content)) visit(content, 0)
  return found.join(' ')
}

const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value)
