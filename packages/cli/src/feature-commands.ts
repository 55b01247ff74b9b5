/** Commands that features bring: found by the catalogue, refused with the build instruction where the feature is left out. */
import { AppError, buildHint, type Command, type CommandHelp, type Feature, ROWS } from '@sluice/sdk'
import type { CliCommand, CliOption } from './command-table.ts'
import type { CliContext } from './context.ts'
import { asking } from './read-input.ts'

/** A command for each name in the catalogue, and for what embedders' own features bring. */
export function featureCommands(features: readonly Feature[]): CliCommand[] {
  const compiled = new Set<string>(features.map(({ id }) => id))
  return ROWS.flatMap(([id, row]) =>
    (row.commands ?? []).map((name): CliCommand => {
      const known = compiled.has(id)
      const { summary, usage, options } = row.commandHelp?.[name] ?? { summary: row.summary }
      return {
        name,
        summary: known ? summary : `${summary} (not in this build)`,
        ...(usage === undefined ? {} : { usage }),
        ...(options ? { options: optionsOf(options) } : {}),
        passesOn: true,
        load: async () => ({
          run: known ? (context) => runFeatureCommand(name.split(' '), context) : () => Promise.reject(leftOut(id, name)),
        }),
      }
    }),
  )
}

const optionsOf = (options: NonNullable<CommandHelp['options']>): Record<string, CliOption> =>
  Object.fromEntries(Object.entries(options).map(([name, option]) => [name, { ...option, type: option.value ? 'string' : 'boolean' }]))

const leftOut = (id: (typeof ROWS)[number][0], name: string): AppError =>
  new AppError('not_compiled', `'sluice ${name}' needs the feature ${id}, which this build leaves out. To get it: ${buildHint(id)}`, {
    fields: { feature: id, build: buildHint(id) },
  })

/** The command of an embedder's own feature: its name is known only once the feature is built. */
export function ownCommand(features: readonly Feature[], words: readonly string[]): CliCommand | undefined {
  if (!features.some(({ id }) => id.startsWith('x-'))) return undefined
  return {
    name: words[0] ?? '',
    summary: 'A command of a feature of your own',
    passesOn: true,
    load: async () => ({ run: (context) => runFeatureCommand([words[0] ?? ''], context) }),
  }
}

/** Runs the feature command that the words and arguments begin with, on the real store and without the HTTP side. */
async function runFeatureCommand(words: readonly string[], context: CliContext): Promise<number> {
  const [{ openFromContext }, { addToConfig }] = await Promise.all([import('./open.ts'), import('@sluice/config')])
  const runtime = await openFromContext(context)
  runtime.offer({ addToConfig: (addition) => addToConfig(context, addition) })
  try {
    const line = [...words, ...context.args]
    const commands = runtime.snapshot().instances.flatMap(({ parts }) => parts.commands ?? [])
    const command = commands.find(({ name }) => name.split(' ').every((word, index) => line[index] === word))
    if (!command) throw new AppError('unavailable', `no feature that is ready has the command '${line.join(' ')}'; see 'sluice features'`)
    return await runWithin(command, line.slice(command.name.split(' ').length), context)
  } finally {
    await runtime.close()
  }
}

async function runWithin(command: Command, args: readonly string[], context: CliContext): Promise<number> {
  const { json, out, stdin } = context
  const signal = context.interrupted()
  const { ask, end } = asking(stdin, out.warn, signal)
  try {
    return await command.run({ args, json, print: out.print, warn: out.warn, signal, ...(stdin.isTTY && !json ? { ask } : {}) })
  } finally {
    end()
  }
}
