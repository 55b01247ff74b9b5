/** Parses the arguments of the hardware commands. */
import { parseArgs } from 'node:util'
import { AppError, CATALOGUE, type CommandContext, errorText } from '@sluice/sdk'

const help = CATALOGUE['hardware-boards'].commandHelp
type Name = keyof typeof help

export interface Arguments {
  readonly words: readonly string[]
  readonly options: Readonly<Record<string, string | undefined>>
}

/**
 * `counts` holds the accepted numbers of words, `options` the names of the accepted options. Throws `invalid_request` with the
 * usage for other arguments.
 */
export function readArguments({ args }: CommandContext, name: Name, counts: readonly number[], options: readonly string[] = []): Arguments {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: Object.fromEntries(options.map((option) => [option, { type: 'string' as const }])),
      allowPositionals: true,
    })
    if (!counts.includes(positionals.length)) throw new Error('Wrong number of arguments')
    return { words: positionals, options: values as Record<string, string | undefined> }
  } catch (cause) {
    const [why = ''] = errorText(cause).split(/\.? To specify|\n/)
    throw new AppError('invalid_request', `${why.replace(/\.$/, '')}; usage: ${usageOf(name)}`, { cause })
  }
}

/** Throws `invalid_request` when the command got arguments. */
export const refuseArguments = (context: CommandContext, name: Name): void => void readArguments(context, name, [0])

function usageOf(name: Name): string {
  const { usage, options = {} } = help[name] as { readonly usage?: string; readonly options?: Record<string, { readonly value?: string }> }
  const named = Object.entries(options).map(([option, { value }]) => `[--${option} ${value}]`)
  return ['sluice', name, usage, ...named].filter((word) => word !== undefined).join(' ')
}
