/** Describes the values that a key accepts, for problems, the reference and the starter file. */
import type { Key, Shape } from './schema-keys.ts'

/** Returns a phrase that follows "must be", such as `a whole number between 0 and 65535`. */
export function describeShape(shape: Shape): string {
  switch (shape.kind) {
    case 'flag':
      return 'a boolean (true or false)'
    case 'choice':
      return `${shape.options.length > 1 ? 'one of ' : ''}${shape.options.map((option) => JSON.stringify(option)).join(', ')}`
    case 'number':
      return `${shape.whole ? 'a whole number' : 'a number'}${range(shape.min, shape.max)}`
    case 'text':
      return shape.format ?? (shape.min === 1 ? 'a string that is not empty' : `a string${lengths(shape.min, shape.max, 'characters')}`)
    case 'list':
      return `an array of ${manyOf(shape.item.shape)}${lengths(shape.min, shape.max, 'entries')}`
    case 'table':
      return 'a table'
    case 'any':
      return shape.of.length > 0 ? shape.of.map(describeShape).join(' or ') : 'any value'
  }
}

export const describeKey = ({ shape }: Key): string => describeShape(shape)

const range = (min: number | undefined, max: number | undefined): string => {
  const open = max === undefined || max >= Number.MAX_SAFE_INTEGER
  if (min === undefined) return open ? '' : ` of at most ${max}`
  return open ? ` of at least ${min}` : ` between ${min} and ${max}`
}

const lengths = (min: number | undefined, max: number | undefined, unit: string): string => {
  if (min === undefined && max === undefined) return ''
  if (min === undefined) return `, at most ${max} ${unit}`
  return max === undefined ? `, at least ${min} ${unit}` : `, ${min} to ${max} ${unit}`
}

function manyOf(shape: Shape): string {
  switch (shape.kind) {
    case 'text':
      return shape.format ? `${shape.format.replace(/^an? /, '')}s` : 'strings'
    case 'number':
      return shape.whole ? `whole numbers${range(shape.min, shape.max)}` : `numbers${range(shape.min, shape.max)}`
    case 'table':
      return 'tables'
    case 'list':
      return 'arrays'
    default:
      return `values, each ${describeShape(shape)}`
  }
}

/** Describes a value of the file for a problem: shortened, and only the kind of a value that may hold other values. */
export function describeValue(value: unknown): string {
  const scalar = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint'
  if (!scalar) return describeKind(value)
  const text = typeof value === 'string' ? JSON.stringify(withoutUserInfo(value)) : String(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/** Masks the user name and password of a URL, because a wrong URL may still have them. */
const withoutUserInfo = (text: string): string => text.replace(/\/\/[^/\s]*@/, '//[secret]@')

export function describeKind(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date) return 'a date or time'
  if (typeof value === 'string') return 'a string'
  if (typeof value === 'boolean') return 'a boolean'
  return typeof value === 'object' ? 'a table' : 'a number'
}
