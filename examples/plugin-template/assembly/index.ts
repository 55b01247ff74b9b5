// A plugin is a function from a text to a text. This one moves each letter by 13 places in the alphabet.

import { fromText, toText } from './text'

export { alloc } from './text'

function rotate(input: string): string {
  const codes = new Array<i32>(input.length)
  for (let index = 0; index < input.length; index++) {
    const code = input.charCodeAt(index)
    const first = code >= 97 ? 97 : 65
    const isLetter = code >= first && code < first + 26
    codes[index] = isLetter ? first + ((code - first + 13) % 26) : code
  }
  return String.fromCharCodes(codes)
}

export function run(at: usize, length: usize): u64 {
  return fromText(rotate(toText(at, length)))
}
