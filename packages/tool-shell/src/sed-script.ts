/** Scripts of `sed` that only print, delete and replace. */

const RANGE = /[ ]*(?:(?:\d+|\$|\/(?:[^\\/\n]|\\.)*\/I?)(?:,(?:\d+|\$|\/(?:[^\\/\n]|\\.)*\/I?|[+~]\d+))?!?)?[ ]*/y
const COMMANDS = [
  /[=dDgGhHlnNpPqx]/y,
  /s\/(?:[^\\\n/]|\\.)*\/(?:[^\\\n/]|\\.)*\/[gpiI\d]*/y,
  /s\|(?:[^\\\n|]|\\.)*\|(?:[^\\\n|]|\\.)*\|[gpiI\d]*/y,
  /s#(?:[^\\\n#]|\\.)*#(?:[^\\\n#]|\\.)*#[gpiI\d]*/y,
  /s,(?:[^\\\n,]|\\.)*,(?:[^\\\n,]|\\.)*,[gpiI\d]*/y,
]
const END = /[ ]*(?:[;\n]|$)/y

/** False for a script with a command that runs a program or reads or writes a file, and for one that is not understood. */
export function isPlainSedScript(script: string): boolean {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const matches = pattern.test(script)
    if (matches) at = pattern.lastIndex
    return matches
  }
  while (at < script.length) if (!(take(RANGE) && COMMANDS.some(take) && take(END))) return false
  return script !== ''
}
