/** JSON that somebody else made: what is missing or of another kind is empty, and nothing throws but for a body that is none. */
import { AppError } from '@sluice/sdk'

export type Members = Readonly<Record<string, unknown>>

const NONE: Members = Object.freeze({})
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Throws `invalid_request` for a body that is not UTF-8 or no JSON. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body))
  } catch {
    throw new AppError('invalid_request', 'Invalid JSON payload')
  }
}

/** As `parseJson`, for a body that has to be an object. */
export function parseObject(body: Uint8Array): Members {
  const json = parseJson(body)
  if (!isObject(json)) throw new AppError('invalid_request', 'Invalid JSON payload')
  return json
}

/** For JSON that may as well be none, as inside of other JSON or in an error's body. */
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

/** What stands at a path such as `message.text`; lists are not entered. */
export const valueAt = (json: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), json)

/** The first text that is not blank at one of the paths; empty if there is none. */
export function textAt(json: unknown, ...paths: string[]): string {
  for (const path of paths) {
    const value = valueAt(json, path)
    if (typeof value === 'string' && value.trim() !== '') return value
  }
  return ''
}

const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value)
