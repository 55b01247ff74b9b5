/** The commands of features. The catalogue names them, so that help and completions know a command even where its feature is left out. */
import {
  AppError,
  buildHint,
  type CatalogueId,
  type CommandHelp,
  type Feature,
  type FeatureId,
  howToGet,
  type OwnRow,
  ROWS,
  type Row,
  rowOf,
} from '@sluice/sdk'
import type { CliCommand, CommandOption, RunCommand } from './command.ts'

/** Returns every command in the catalogue and in the rows of embedders' features. A command whose feature this build leaves out throws `not_compiled` with the build instruction. */
export function featureCommands(features: readonly Feature[]): CliCommand[] {
  const compiled = new Set<string>(features.map(({ id }) => id))
  const own = features.flatMap(({ id, row }): [FeatureId, OwnRow][] => (row && !rowOf(id) ? [[id, row]] : []))
  return [...ROWS, ...own].flatMap(([id, row]: readonly [FeatureId, Row | OwnRow]) =>
    (row.commands ?? []).map((name): CliCommand => {
      const isCompiled = compiled.has(id)
      const { summary, usage, options } = row.commandHelp?.[name] ?? { summary: row.summary }
      return {
        name,
        summary: isCompiled ? summary : `${summary} (not in this build)`,
        ...(usage === undefined ? {} : { usage }),
        ...(options ? { options: commandOptions(options) } : {}),
        passesOn: true,
        load: async () => (isCompiled ? runFeatureCommand(name.split(' ')) : refuseLeftOut(id as CatalogueId, name)),
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
      `'sluice ${name}' needs the feature ${id}, which this build leaves out. To get it, ${howToGet(id)}`,
      {
        fields: { feature: id, build: buildHint(id) },
      },
    )
  }

/** Runs the command in the daemon or, if none runs, in this process. */
const runFeatureCommand =
  (words: readonly string[]): RunCommand =>
  async (context) => {
    const [{ withApi }, { followCommand }] = await Promise.all([import('./api/open-api.ts'), import('./follow-command.ts')])
    return withApi(context, (api) => followCommand(api, context, [...words, ...context.args]), { features: true })
  }
