/** `sluice cluster sign`: signs or removes the unsigned rows of a shared database, after it has shown them to an operator. */
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import { configuredStoreTools } from '@sluice/runtime/open-backend'
import { AppError, type RowSurvey, type UnverifiedRow } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { createPrompter } from '../read-input.ts'

const VALUE_CHARACTERS = 200

export async function run(context: CliContext): Promise<number> {
  const { out, json, args, options } = context
  const does = options.remove === true ? 'remove' : 'sign'
  if (does === 'remove' && args.length === 0)
    throw new AppError('invalid_request', "Name the rows to remove: 'sluice cluster sign' lists the rows that are not signed.")
  const log = createLogger({ secrets: () => [], level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const tools = await configuredStoreTools({ ...context, log })
  if (!tools)
    throw new AppError('invalid_request', 'The embedded database has nothing to sign: set [store] backend = "postgres" and its url.')
  if (!tools.backend.sign) throw new AppError('not_compiled', 'This build cannot sign rows of the database.')
  let shown: { readonly survey: RowSurvey; readonly rows: readonly UnverifiedRow[] } | undefined
  const isDone = await tools.backend.sign({
    ...tools.options,
    async decide(survey) {
      const rows = chosen(survey.unverified, args)
      shown = { survey, rows }
      if (!json) show(context, shown)
      return options.yes === true || (!json && (await confirm(context, does, rows.length))) ? { does, rows } : undefined
    },
  })
  if (json)
    out.json({
      done: isDone,
      does,
      demanded: isDone || shown?.survey.isDemanded === true,
      config_version: shown?.survey.configVersion ?? 0,
      config_seen: shown?.survey.configSeen ?? 0,
      rows: (shown?.rows ?? []).map(({ name, fault, values }) => ({ row: name, fault, values })),
    })
  else if (isDone)
    out.print(
      `${does === 'sign' ? 'signed' : 'removed'}: ${rowsText(shown?.rows.length ?? 0)}; every node refuses unsigned rows from now on`,
    )
  else out.warn('nothing is changed: answer y, or give --yes')
  return isDone ? 0 : 1
}

function chosen(unverified: readonly UnverifiedRow[], names: readonly string[]): readonly UnverifiedRow[] {
  if (names.length === 0) return unverified
  return names.map((name) => {
    const row = unverified.find((one) => one.name === name)
    if (row) return row
    throw new AppError('not_found', `There is no unsigned row ${name}; 'sluice cluster sign' lists the unsigned rows.`)
  })
}

function show({ out }: CliContext, { survey, rows }: { readonly survey: RowSurvey; readonly rows: readonly UnverifiedRow[] }): void {
  const { unverified, configVersion, configSeen } = survey
  if (rows.length > 0)
    out.table(
      ['row', 'fault', 'content'],
      rows.map(({ name, fault, values }) => [name, fault ?? 'not signed', name.startsWith('config/') ? 'see below' : contentOf(values)]),
    )
  else out.print('every row of configuration, devices and grants is signed')
  for (const { name, values } of rows) {
    if (!name.startsWith('config/')) continue
    out.print(`\n${name} by ${values.by_whom}:`)
    for (const line of String(values.text).trimEnd().split('\n')) out.print(`  ${line}`)
  }
  const rest = unverified.length - rows.length
  if (rest > 0) out.warn(`${rowsText(rest)} not shown here: not signed either`)
  if (configVersion < configSeen)
    out.warn(
      `the newest configuration is version ${configVersion}, but this machine has read version ${configSeen}: a yes accepts the older one`,
    )
}

const rowsText = (count: number): string => (count === 1 ? '1 row' : `${count} rows`)

function contentOf(values: UnverifiedRow['values']): string {
  const text = JSON.stringify(values)
  return text.length > VALUE_CHARACTERS ? `${text.slice(0, VALUE_CHARACTERS)}…` : text
}

async function confirm({ stdin, out, interrupted }: CliContext, does: 'sign' | 'remove', count: number): Promise<boolean> {
  if (!stdin.isTTY) return false
  const prompter = createPrompter(stdin, (question) => out.warn(question), interrupted())
  try {
    const answer = await prompter.ask(
      `\n${does === 'sign' ? 'Sign' : 'Remove'} ${rowsText(count)}, and refuse every unsigned row from now on? [y/N]`,
    )
    return /^\s*y(es)?\s*$/i.test(answer ?? '')
  } finally {
    prompter.close()
  }
}
