import { textAt, valueAt } from '@sluice/kit/foreign-json'

/** As `textAt`, for what may as well have been written as a number. */
export function idAt(json: unknown, ...paths: string[]): string {
  for (const path of paths) {
    const value = valueAt(json, path)
    const id = Number.isSafeInteger(value) ? String(value) : textAt(json, path)
    if (id !== '') return id
  }
  return ''
}
