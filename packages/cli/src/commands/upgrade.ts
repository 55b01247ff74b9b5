/** `sluice upgrade --check` and `--rollback`: the effects of this program on a data directory, and the return to the earlier program. */
import { accessSync, constants, existsSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readRecord } from '@sluice/backup'
import { readConfig, storeSection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { createRunBare } from '@sluice/runtime/run-process'
import { AppError, errorText } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store/lock-data-dir'
import { planUpgrade, rollBack, type UpgradePlan } from '@sluice/store/upgrade-plan'
import type { CliContext } from '../context.ts'
import { megabytes } from '../megabytes.ts'
import { probeDaemon } from '../probe-daemon.ts'

export async function run(context: CliContext): Promise<number> {
  const { check, rollback } = context.options
  if (check === true && rollback !== true) return checkUpgrade(context)
  if (rollback === true && check !== true) return goBack(context)
  throw new AppError(
    'invalid_request',
    'choose --check or --rollback; the program itself is upgraded by its installer, as docs/guides/upgrade.md shows',
  )
}

interface Finding {
  readonly about: string
  readonly ok: boolean
  readonly detail: string
}

async function checkUpgrade(context: CliContext): Promise<number> {
  const { out, json, version, dataDir } = context
  const plan = planUpgrade(databaseOf(context))
  const daemon = await probeDaemon(context)
  const findings: Finding[] = [
    { about: 'program', ok: true, detail: `${version}; ${daemon.running ? `the running daemon is ${daemon.version}` : daemon.reason}` },
    await configFinding(context),
    databaseFinding(plan),
    backupFinding(dataDir),
  ]
  const ok = findings.every((finding) => finding.ok)
  if (json) out.json({ ok, version, running: daemon.running ? daemon.version : null, schema: plan ?? null, findings })
  else {
    for (const { about, ok: isOk, detail } of findings)
      out.hint(`${out.style(isOk ? 'green' : 'red', isOk ? 'ok  ' : 'fail')}  ${about.padEnd(13)}  ${detail}`)
    if (ok) out.hint(daemon.running ? "'sluice restart' begins this program" : "'sluice daemon' begins this program")
  }
  return ok ? 0 : 1
}

const databaseOf = ({ dataDir }: CliContext): string => join(dataDir, 'sluice.db')

async function configFinding(context: CliContext): Promise<Finding> {
  try {
    await readConfig(context)
    return { about: 'configuration', ok: true, detail: `${context.configFile} is valid for this program` }
  } catch (error) {
    return { about: 'configuration', ok: false, detail: `${errorText(error)}; see 'sluice config check'` }
  }
}

function databaseFinding(plan: UpgradePlan | undefined): Finding {
  const about = 'database'
  if (!plan) return { about, ok: true, detail: 'there is none in the data directory' }
  const { from, to, neededBytes, freeBytes } = plan
  if (from === to) return { about, ok: true, detail: `its form (${to}) stays, and an earlier program of this form can go on with it` }
  if (from > to)
    return { about, ok: false, detail: `a newer program has written it (form ${from}; this program knows ${to}): run that one` }
  const room = `${megabytes(neededBytes)} MB are needed for the copy before, ${megabytes(freeBytes)} MB are free`
  return { about, ok: freeBytes >= neededBytes, detail: `its form changes from ${from} to ${to}; ${room}` }
}

/** A missing backup stops no upgrade, because the start copies the database. */
function backupFinding(dataDir: string): Finding {
  const last = existsSync(dataDir) ? readRecord(dataDir).last : null
  return { about: 'backup', ok: true, detail: last ? `${last.at}: ${last.file}` : "there is none; 'sluice backup' makes one" }
}

async function goBack(context: CliContext): Promise<number> {
  const { out, json, dataDir } = context
  await requireEmbedded(context)
  if (!existsSync(dataDir)) throw new AppError('not_found', `${dataDir} does not exist`)
  const lock = lockDataDir(dataDir)
  try {
    const before = previousProgram(process.argv[1])
    const { text, ...answer } = (before && (await keepDatabase(before.build, context))) ?? putBack(databaseOf(context))
    before?.install()
    const program = before?.build ?? null
    if (json) out.json({ ...answer, program })
    else {
      out.print(text)
      out.print(
        program === null
          ? 'Start the program of the release before: this one would upgrade the database again.'
          : `the installed program is ${program} again: start it as you have started it before`,
      )
    }
    return 0
  } finally {
    lock.release()
  }
}

/** The database after the way back. `copied_at` and `newer` are null if it was not replaced. */
interface Database {
  readonly text: string
  readonly schema: number
  readonly copied_at: string | null
  /** The folder with the database before the way back. */
  readonly newer: string | null
}

/** Undefined if the earlier program cannot go on with the database, or if it has no check that could say so. Throws if it was ended before. */
async function keepDatabase(build: string, { dataDir, configFile, interrupted }: CliContext): Promise<Database | undefined> {
  const args = [join(build, 'sluice.mjs'), 'upgrade', '--check', '--json', '--data-dir', dataDir, '--config', configFile]
  const command = { file: process.execPath, args, cwd: dataDir, env: {} }
  const signal = interrupted()
  const { stdout, exitCode } = await createRunBare(systemClock)(command, signal)
  if (signal.aborted) throw new AppError('aborted', 'The way back was aborted. Nothing has changed.')
  if (exitCode === null)
    throw new AppError('unavailable', `${build} was ended before it said whether it can go on with the database. Nothing has changed.`)
  const { from, to } = planIn(stdout) ?? {}
  if (from === undefined || to === undefined || from > to) return undefined
  const text = `the database stays as it is (form ${from}), because the program before this one goes on with it`
  return { text, schema: from, copied_at: null, newer: null }
}

function planIn(answer: string): Partial<UpgradePlan> | undefined {
  try {
    return (JSON.parse(answer) as { schema: UpgradePlan | null }).schema ?? undefined
  } catch {
    return undefined // The program is of a release without this check.
  }
}

function putBack(file: string): Database {
  const { copy, newer } = rollBack(file, Date.now())
  const copied_at = new Date(copy.madeAtMs).toISOString()
  const text = `the database is as it was at ${copied_at} (form ${copy.schema}); the newer one is in ${newer}`
  return { text, schema: copy.schema, copied_at, newer }
}

/** A configuration that this program refuses does not keep it from going back. */
async function requireEmbedded(context: CliContext): Promise<void> {
  const config = await readConfig(context).catch(() => undefined)
  if (config === undefined || config.core(storeSection).backend === 'sqlite') return
  throw new AppError(
    'unavailable',
    'The store is on PostgreSQL, whose upgrade makes no copy: restore the backup that you made before the upgrade with the tools of PostgreSQL, and start the release before.',
  )
}

/** The build before this one, which an installer has kept. */
interface PreviousProgram {
  readonly build: string
  /** Makes it the installed one. */
  install(): void
}

/** The content of installed.json. An installer replaces it. */
interface Installed {
  readonly build: string
  readonly previous?: string
  /** Whether the program has gone back to `build`, from `previous`. */
  readonly wentBack?: boolean
}

/**
 * Finds the build before this one and checks that it can be installed again; null if no installer has kept one. Throws `conflict` if
 * it has been left by the way back, `unavailable` for one that is not complete, and `forbidden` if the caller may not install it.
 */
export function previousProgram(entry: string | undefined): PreviousProgram | null {
  if (entry === undefined || !existsSync(entry)) return null
  const library = join(dirname(realpathSync(entry)), '..', '..')
  const [state, current] = [join(library, 'installed.json'), join(library, 'current')]
  if (!existsSync(state) || !existsSync(current)) return null
  const { build, previous, wentBack, ...rest } = JSON.parse(readFileSync(state, 'utf8')) as Installed
  if (previous === undefined) return null
  if (wentBack) throw new AppError('conflict', `The installed program is ${build}: the way back has been taken already`)
  const version = versionOf(previous)
  try {
    accessSync(library, constants.W_OK)
  } catch (cause) {
    throw new AppError(
      'forbidden',
      `The program before this one is installed in ${library}, which only its owner may write: run this as that user`,
      {
        cause,
      },
    )
  }
  const install = (): void => {
    const link = `${current}.${process.pid}.new`
    rmSync(link, { force: true })
    symlinkSync(previous, link)
    renameSync(link, current)
    const draft = `${state}.${process.pid}.new`
    writeFileSync(draft, `${JSON.stringify({ ...rest, version, build: previous, previous: build, wentBack: true }, null, 2)}\n`, {
      mode: 0o644,
    })
    renameSync(draft, state)
  }
  return { build: previous, install }
}

function versionOf(build: string): string {
  try {
    accessSync(join(build, 'sluice.mjs'), constants.R_OK)
    return (JSON.parse(readFileSync(join(build, 'package.json'), 'utf8')) as { version: string }).version
  } catch (cause) {
    throw new AppError(
      'unavailable',
      `The program before this one, ${build}, is not complete, so the database stays as it is: install that release again, then go back`,
      { cause },
    )
  }
}
