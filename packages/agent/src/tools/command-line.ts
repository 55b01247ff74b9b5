/** Commands that a model has written as a list of words. */
import { shellWord } from '@sluice/kit'

/** A word that a shell would read as an operator, which a list of words cannot hold. */
const OPERATOR = /^[|&;<>()]|^\d?>|[|&;]$/

/** Returns the command line of the words; undefined where they can be read in several ways, such as a list of commands. */
export function commandLine(words: readonly unknown[]): string | undefined {
  if (!words.every((word) => typeof word === 'string')) return undefined
  const [program, ...more] = words
  if (program === undefined || more.length === 0) return program
  return /\s/.test(program) || words.some((word) => OPERATOR.test(word)) ? undefined : words.map(shellWord).join(' ')
}
