/** Reading JSON somebody else made: whatever it is, nothing here throws but for a body that is none. */
import { AppError } from '@sluice/sdk'

/** Throws `invalid_request` for bytes that are no JSON object. */
export function parseObject(body: Uint8Array): Readonly<Record<string, unknown>> {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    json = undefined
  }
  if (!isObject(json)) throw new AppError('invalid_request', 'Invalid JSON payload')
  return json
}

/** What stands at a path such as `message.text`. */
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

/** As `textAt`, for what may as well have been written as a number. */
export function idAt(json: unknown, ...paths: string[]): string {
  for (const path of paths) {
    const value = valueAt(json, path)
    const id = Number.isSafeInteger(value) ? String(value) : textAt(json, path)
    if (id !== '') return id
  }
  return ''
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
