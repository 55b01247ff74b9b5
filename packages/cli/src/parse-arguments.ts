/** Parses the arguments of a command into option values and positional arguments. */
import { parseArgs } from 'node:util'
import { AppError } from '@sluice/sdk'
import { type CommandDescription, parserOptions } from './command.ts'
import { didYouMean } from './find-command.ts'

export interface ParsedArguments {
  readonly values: Record<string, string | boolean | undefined>
  readonly positionals: string[]
}

/** Throws `invalid_request` for an unknown option, a missing option value, or too few or too many arguments. */
export async function parseArguments(args: readonly string[], command: CommandDescription): Promise<ParsedArguments> {
  if (command.passesOn) return parseCommonOptions(args)
  const options = parserOptions(command)
  try {
    const parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
    const count = parsed.positionals.length
    if (count < (command.argsMin ?? 0)) throw new Error(`${command.usage?.split(' ')[count] ?? 'an argument'} is missing`)
    if (count > (command.argsMax ?? 0)) throw new Error(`'${parsed.positionals[command.argsMax ?? 0]}' is one argument too many`)
    return parsed as ParsedArguments
  } catch (error) {
    const reason = firstSentence(error)
    const [, unknownOption] = /^Unknown option '--?([^']+)'/.exec(reason) ?? []
    const suggestion = unknownOption === undefined ? '' : await didYouMean(unknownOption, Object.keys(options), '--')
    throw new AppError('invalid_request', `${reason}${suggestion}; see 'sluice ${command.name} --help'`, { cause: error })
  }
}

/** Returns the first sentence of an error of `parseArgs`, without its full stop; the others describe the use of `--`. */
function firstSentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return (message.split(/\. To specify|\.?\n/)[0] ?? message).replace(/\.$/, '')
}

/** Parses the common options; every other argument stays in its order for the command of a feature. */
function parseCommonOptions(args: readonly string[]): ParsedArguments {
  const options = parserOptions()
  const { values, tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true })
  const common = tokens.flatMap((token) => (token.kind === 'option' && Object.hasOwn(options, token.name) ? [token] : []))
  const taken = new Set(
    common.flatMap(({ index, value, inlineValue }) => (value !== undefined && !inlineValue ? [index, index + 1] : [index])),
  )
  return { values: values as ParsedArguments['values'], positionals: args.filter((_, index) => !taken.has(index)) }
}
