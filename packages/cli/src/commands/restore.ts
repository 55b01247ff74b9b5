/** `sluice restore`: replaces the data directory by a backup. */
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { checkBackup, type Restored, restoreBackup } from '@sluice/backup/restore'
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { givenPassphrase, passphraseMissing, typedPassphrase } from '../passphrase.ts'

export async function run(context: CliContext): Promise<number> {
  const { args, out, json, dataDir, options } = context
  const file = resolve(args[0] ?? '')
  const passphrase = async (): Promise<string> => {
    const given = givenPassphrase(context) ?? (await typedPassphrase(context, false))
    if (given === undefined) throw passphraseMissing()
    return given
  }
  const reading = { file, passphrase, onRead: showProgress(context, file), skipLinks: options['skip-links'] === true }
  if (options.check === true) {
    const { created_at, version, files, with_secrets } = await checkBackup(reading)
    out.progress('')
    if (json) out.json({ file, created_at, version, files: files.length, with_secrets })
    else
      out.print(
        `${file} is sound: written ${created_at} by release ${version}, ${files.length} files, ${with_secrets ? 'with' : 'without'} secrets`,
      )
    return 0
  }
  const log = createLogger({ secrets: () => [], level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const restored = await restoreBackup({ ...reading, dataDir, clock: systemClock, log })
  out.progress('')
  if (json) out.json(shown(context, restored))
  else printRestored(context, restored)
  return 0
}

const shown = ({ dataDir }: CliContext, { manifest, aside, marked, missingKeys, skipped }: Restored) => ({
  data_dir: dataDir,
  created_at: manifest.created_at,
  old_data: aside ?? null,
  marked,
  left_out: manifest.left_out,
  missing_keys: missingKeys,
  skipped_links: skipped,
})

function printRestored({ out, dataDir, configFile }: CliContext, { manifest, aside, marked, missingKeys, skipped }: Restored): void {
  const warn = (text: string): void => out.warn(`${out.style('yellow', 'warning')}: ${text}`)
  out.print(`${dataDir} holds the backup of ${manifest.created_at}`)
  if (aside !== undefined) out.print(`the old data is in ${aside}: delete it once all is well`)
  const { messages, replies, turns, approvals, runs } = marked
  if (messages > 0) out.hint(`messages that may have been answered since: ${messages}; see 'sluice inbox dead'`)
  if (replies > 0) out.hint(`replies that may have been sent since: ${replies}; see 'sluice outbox list --state ambiguous'`)
  if (turns + approvals + runs > 0) out.print(`ended: ${turns} turns, ${approvals} approvals, ${runs} procedure runs`)
  const { left_out } = manifest
  if (left_out.length > 0)
    warn(`not in the backup, because they held secrets in plain text: ${left_out.join(', ')}. Set them again with 'sluice config set'`)
  if (missingKeys.length > 0)
    warn(
      `secrets are encrypted with the key ${missingKeys.join(', ')}, which is not here: copy that secret.key to ${dataDir}, or set the secrets again`,
    )
  if (skipped.length > 0) warn(`links that led out of the data directory are left out: ${skipped.join(', ')}`)
  if (resolve(configFile) !== join(dataDir, 'config.toml'))
    warn(`the configuration was restored to ${join(dataDir, 'config.toml')}, not to ${configFile}`)
}

function showProgress({ out, json }: CliContext, file: string): (bytes: number) => void {
  const bytesTotal = statSync(file, { throwIfNoEntry: false })?.size
  if (bytesTotal === undefined) throw new AppError('not_found', `There is no file ${file}.`)
  let shownPercent = -1
  return (bytes) => {
    const percent = Math.floor((100 * bytes) / Math.max(1, bytesTotal))
    if (!json && percent !== shownPercent) out.progress(`reading ${percent}%`)
    shownPercent = percent
  }
}
