/** How a person calls this program here: `sluice` if it is installed, else the command of the clone or the path of the program. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/** The command that runs a build of a clone, also where the Node of the machine is too old for it. */
const FROM_CLONE = 'npm run -s sluice --'

/** Returns the words that a person types before the words of a command. `entry` is the path of the program. */
export function programName(entry: string | undefined, path = ''): string {
  if (entry === undefined || path.split(delimiter).some((folder) => folder !== '' && isProgram(join(folder, 'sluice')))) return 'sluice'
  const build = dirname(entry)
  if (existsSync(join(build, '../../scripts/bootstrap.mjs'))) return FROM_CLONE
  const program = join(build, 'sluice')
  return isProgram(program) ? shellWord(program) : 'sluice'
}

/** The name in a command: in quotes, at the begin of a line, or after a colon, a bracket or "see". */
const NAME_IN_COMMAND = /(^ *|['`(]|: |\bsee )sluice (?=[a-z<-])/gm

/** Replaces the name in each command, such as `'sluice status'`, by the words that call this program here. */
export const asTyped = (text: string, program: string): string =>
  program === 'sluice' ? text : text.replaceAll(NAME_IN_COMMAND, (_, before: string) => `${before}${program} `)

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

const shellWord = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `"${text.replaceAll(/(["$`\\])/g, '\\$1')}"`)
