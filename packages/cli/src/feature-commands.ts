/** The commands of features. The catalogue names them, so that help and completions know a command even where its feature is left out. */
import { AppError, buildHint, type CatalogueId, type Command, type CommandHelp, type Feature, ROWS } from '@sluice/sdk'
import type { CliCommand, CommandOption, RunCommand } from './command.ts'
import type { CliContext } from './context.ts'
import { createPrompter } from './read-input.ts'

/** Returns every command in the catalogue. A command whose feature this build leaves out throws `not_compiled` with the build instruction. */
export function featureCommands(features: readonly Feature[]): CliCommand[] {
  const compiled = new Set<string>(features.map(({ id }) => id))
  return ROWS.flatMap(([id, row]) =>
    (row.commands ?? []).map((name): CliCommand => {
      const isCompiled = compiled.has(id)
      const { summary, usage, options } = row.commandHelp?.[name] ?? { summary: row.summary }
      return {
        name,
        summary: isCompiled ? summary : `${summary} (not in this build)`,
        ...(usage === undefined ? {} : { usage }),
        ...(options ? { options: commandOptions(options) } : {}),
        passesOn: true,
        load: async () => (isCompiled ? runFeatureCommand(name.split(' ')) : refuseLeftOut(id, name)),
      }
    }),
  )
}

/**
 * Returns a command for a word that no other command has, if the build has a feature of an embedder: the names of its commands
 * are known only after the feature is built.
 */
export function embedderCommand(features: readonly Feature[], firstWord: string): CliCommand | undefined {
  if (!features.some(({ id }) => id.startsWith('x-'))) return undefined
  return {
    name: firstWord,
    summary: 'A command of a feature of your own',
    passesOn: true,
    load: async () => runFeatureCommand([firstWord]),
  }
}

const commandOptions = (options: NonNullable<CommandHelp['options']>): Record<string, CommandOption> =>
  Object.fromEntries(Object.entries(options).map(([name, option]) => [name, { ...option, type: option.value ? 'string' : 'boolean' }]))

const refuseLeftOut =
  (id: CatalogueId, name: string): RunCommand =>
  async () => {
    throw new AppError(
      'not_compiled',
      `'sluice ${name}' needs the feature ${id}, which this build leaves out. To get it: ${buildHint(id)}`,
      {
        fields: { feature: id, build: buildHint(id) },
      },
    )
  }

/** Runs the command of a ready feature that the words and arguments begin with, in a runtime without the HTTP server. */
const runFeatureCommand =
  (words: readonly string[]): RunCommand =>
  async (context) => {
    const [{ openRuntime }, { addToConfig }] = await Promise.all([import('@sluice/runtime'), import('@sluice/config/edit')])
    const runtime = await openRuntime({ ...context, quiet: true })
    runtime.offer({ addToConfig: (addition) => addToConfig(context, addition) })
    try {
      const line = [...words, ...context.args]
      const commands = runtime.snapshot().instances.flatMap(({ parts }) => parts.commands ?? [])
      const command = commands.find(({ name }) => name.split(' ').every((word, index) => line[index] === word))
      if (!command) throw new AppError('unavailable', `no feature that is ready has the command '${line.join(' ')}'; see 'sluice features'`)
      return await runWithPrompter(command, line.slice(command.name.split(' ').length), context)
    } finally {
      await runtime.close()
    }
  }

/** Runs a command of a feature. It can ask questions only at a terminal and without `--json`. */
async function runWithPrompter(command: Command, args: readonly string[], { json, out, stdin, interrupted }: CliContext): Promise<number> {
  const signal = interrupted()
  const prompter = createPrompter(stdin, out.warn, signal)
  const canAsk = stdin.isTTY === true && !json
  try {
    return await command.run({ args, json, print: out.print, warn: out.warn, signal, ...(canAsk ? { ask: prompter.ask } : {}) })
  } finally {
    prompter.close()
  }
}
