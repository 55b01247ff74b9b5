/**
 * Reads the input of a tool of another program as the model meant it: numbers, booleans, lists and objects that it has written as texts.
 * The other program checks the input itself, so that everything else stays as it is.
 */
import { isObject } from './input-as-meant.ts'

/** A JSON Schema, or a part of one. */
type Json = Readonly<Record<string, unknown>>

/** Returns the input that is meant, in which a value changes only where its type is not the one that the schema names. */
export function jsonAsMeant(schema: unknown, given: unknown): unknown {
  if (!isObject(schema)) return given
  const { type, anyOf } = schema
  if (typeof type !== 'string') return Array.isArray(anyOf) ? anyAsMeant(anyOf, given) : given
  const typed = typedText(type, given)
  if (type === 'array') return Array.isArray(typed) ? typed.map((one) => jsonAsMeant(schema.items, one)) : oneAsMeant(schema.items, given)
  return type === 'object' && isObject(typed) ? membersAsMeant(schema, typed) : typed
}

/** Returns a list of one item where the items are objects, and the value is one. */
function oneAsMeant(item: unknown, given: unknown): unknown {
  const one = isObject(item) && item.type === 'object' ? jsonAsMeant(item, given) : undefined
  return isObject(one) ? [one] : given
}

/** Reads the value as the first variant that has another type for it, unless a variant takes it as it is. */
function anyAsMeant(variants: readonly unknown[], given: unknown): unknown {
  if (variants.some((variant) => takes(variant, given))) return given
  return variants.map((variant) => jsonAsMeant(variant, given)).find((meant, at) => takes(variants[at], meant)) ?? given
}

/** Whether a schema names no type, or that of the value. */
function takes(schema: unknown, value: unknown): boolean {
  const type = isObject(schema) ? schema.type : undefined
  if (typeof type !== 'string') return true
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  return type === 'object' ? isObject(value) : typeof value === type
}

function membersAsMeant({ properties, additionalProperties }: Json, given: Json): Json {
  const known = isObject(properties) ? properties : {}
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      jsonAsMeant(Object.hasOwn(known, name) ? known[name] : additionalProperties, value),
    ]),
  )
}

/** Returns the value of this type that a text contains as JSON. Returns every other text, and a value that is not a text, unchanged. */
function typedText(type: string, text: unknown): unknown {
  if (type === 'string' || typeof text !== 'string') return text
  try {
    const value: unknown = JSON.parse(type === 'boolean' ? text.toLowerCase() : text)
    // A number with more digits than a number keeps is not what the model wrote.
    const isExact = typeof value !== 'number' || !Number.isInteger(value) || Number.isSafeInteger(value)
    return takes({ type }, value) && isExact ? value : text
  } catch {
    return text
  }
}
