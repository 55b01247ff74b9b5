/** Reads the arguments of a call as the model has written them. */

/**
 * Parses the arguments of a call. Models also write line breaks and other control characters into texts as they are, and words behind the
 * arguments, and put the arguments into a code fence or into one text; all four are unambiguous. Throws as `JSON.parse` does for everything
 * else, such as arguments that are cut off.
 */
export function parseArguments(json: string): unknown {
  const given = parseObject(json)
  if (typeof given !== 'string') return given
  try {
    const inner = parseObject(given)
    return isObject(inner) ? inner : given
  } catch {
    return given
  }
}

/** Returns the arguments as the history shows them, in which providers accept only objects; empty for any other arguments. */
export function objectOfArguments(json: string): object {
  try {
    const given = parseArguments(json)
    return isObject(given) ? given : {}
  } catch {
    return {}
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

function parseObject(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    const first = firstObject(json)
    if (first === undefined) throw error
    return JSON.parse(first)
  }
}

const FENCE = /^\s*```(?:json)?(?=\s)/i

/** The first object of a text, with the control characters in its texts escaped; undefined where it has no end. */
function firstObject(given: string): string | undefined {
  const text = given.replace(FENCE, '')
  const start = text.search(/\S/)
  if (text[start] !== '{') return undefined
  let escaped = ''
  let depth = 0
  let isText = false
  for (let at = start; at < text.length; at++) {
    const char = text[at] ?? ''
    escaped += isText && char < ' ' ? JSON.stringify(char).slice(1, -1) : char
    if (isText && char === '\\') escaped += text[++at] ?? ''
    else if (char === '"') isText = !isText
    else if (!isText && (char === '{' || char === '[')) depth++
    else if (!isText && (char === '}' || char === ']') && --depth === 0) return escaped
  }
  return undefined
}
