/** Recognizes `sed` scripts that only print, delete and replace text. */

const BLANKS = / */y
const COMMA = /,/y
const LINE = /\d+|\$/y
const MATCH = /\/(?:[^\\/\n]|\\.)*\/I?/y
const STEP = /[+~]\d+/y
const NOT = /!/y
const COMMANDS = [
  /[=dDgGhHlnNpPqx]/y,
  /s\/(?:[^\\\n/]|\\.)*\/(?:[^\\\n/]|\\.)*\/[gpiI\d]*/y,
  /s\|(?:[^\\\n|]|\\.)*\|(?:[^\\\n|]|\\.)*\|[gpiI\d]*/y,
  /s#(?:[^\\\n#]|\\.)*#(?:[^\\\n#]|\\.)*#[gpiI\d]*/y,
  /s,(?:[^\\\n,]|\\.)*,(?:[^\\\n,]|\\.)*,[gpiI\d]*/y,
]
const SEPARATOR = /[;\n]/y

/** Returns false for a script with a command that runs a program or opens a file, and for a script that cannot be parsed. */
export function isHarmlessSedScript(script: string): boolean {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const matches = pattern.test(script)
    if (matches) at = pattern.lastIndex
    return matches
  }
  const takeAddress = (): boolean => take(LINE) || take(MATCH)
  while (at < script.length) {
    take(BLANKS)
    if (takeAddress() && take(COMMA) && !takeAddress() && !take(STEP)) return false
    take(NOT)
    take(BLANKS)
    if (!COMMANDS.some(take)) return false
    take(BLANKS)
    if (at < script.length && !take(SEPARATOR)) return false
  }
  return script !== ''
}
