/** Key paths, as people write them (`provider.fallback[0].model`) and as steps. */
import { AppError } from '@sluice/sdk'

/** A name of a table's key, or the place in a list, from 0. */
export type KeyStep = string | number
export type KeyPath = readonly KeyStep[]

/** A file nests no deeper, and so does no path into it. */
export const DEPTH_MAX = 32

/** The value at a path of plain data; undefined where the path leads nowhere. Inherited members are not followed. */
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

/** Reads a dotted path; names with other characters stand in quotes. Throws `invalid_request` for anything else. */
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

/** A name as it stands in a TOML file: bare where it can be. */
export const formatName = (name: string): string => (BARE.test(name) ? name : JSON.stringify(name))

/** Where a secret stands, for binding its ciphertext to it: without places in lists, so that entries can be moved. */
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
