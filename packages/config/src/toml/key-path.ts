/** Key paths as text (`provider.fallback[0].model`) and as steps. */
import { AppError, printable } from '@sluice/sdk'

/** The name of a key, or an index of a list, from 0. */
export type KeyStep = string | number
export type KeyPath = readonly KeyStep[]

/** The largest depth of a file and of a path. */
export const DEPTH_MAX = 32

/** Returns the value at a path of plain data; undefined if the path does not exist. Does not follow inherited members. */
export function followPath(data: unknown, path: KeyPath): unknown {
  let value = data
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<KeyStep, unknown>)[step]
  }
  return value
}

const BARE = /^[\w-]+$/
const STEP = /(?:^|(?!^)\.)(?:([\w-]+)|("(?:[^"\\]|\\.)*")|'([^']*)')|(?!^)\[(\d{1,6})\]/y

/** Parses a dotted path. Names with other characters must be quoted. Throws `invalid_request`. */
export function parseKeyPath(text: string): KeyPath {
  const steps: KeyStep[] = []
  const step = new RegExp(STEP)
  while (step.lastIndex < text.length || steps.length === 0) {
    const match = step.exec(text)
    const read = match && stepOf(match)
    if (read === undefined || read === null || steps.length === DEPTH_MAX) {
      throw new AppError(
        'invalid_request',
        `"${text.slice(0, 80)}" is not a key; a key looks like gateway.port or provider.fallback[0].model`,
      )
    }
    steps.push(read)
  }
  return steps
}

export const formatKeyPath = (path: KeyPath): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index > 0 ? '.' : ''}${formatName(step)}`)).join('')

/** Formats a name as TOML, without quotes when they are not needed. */
export const formatName = (name: string): string => (BARE.test(name) ? name : formatText(name))

/** Formats a text as JSON does, and also escapes characters that control or reorder text, and the replacement character. */
export const formatText = (text: string): string => printable(JSON.stringify(text)).replaceAll('\ufffd', '\\ufffd')

/** Returns the path that a secret is bound to. It has no list indexes, so that entries can be moved. */
export const schemaPath = (path: KeyPath): string => formatKeyPath(path.filter((step) => typeof step === 'string'))

function stepOf([, bare, basic, literal, place]: RegExpExecArray): KeyStep | undefined {
  if (place !== undefined) return Number(place)
  if (basic === undefined) return bare ?? literal
  try {
    return JSON.parse(basic) as string
  } catch {
    return undefined
  }
}
