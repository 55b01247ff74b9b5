/** Reads the passphrase of a backup: from a file, from the environment, or from the terminal. */
import { readFileSync } from 'node:fs'
import { AppError } from '@sluice/sdk'
import type { CliContext } from './context.ts'
import { textOption } from './option-values.ts'
import { readHidden } from './read-input.ts'

const VARIABLE = 'SVC_BACKUP_PASSPHRASE'

/** Returns the passphrase of the options or the environment; undefined without one. Throws `invalid_request` for an empty file. */
export function givenPassphrase(context: CliContext): string | undefined {
  const file = textOption(context, 'passphrase-file')
  if (file === undefined) return context.env[VARIABLE] || undefined
  const passphrase = readFileSync(file, 'utf8').split('\n', 1)[0]?.replace(/\r$/, '')
  if (!passphrase) throw new AppError('invalid_request', `the first line of ${file} is empty`)
  return passphrase
}

/** Asks at the terminal; undefined if standard input is not a terminal. `again`: a typing error would make a new backup useless. */
export async function typedPassphrase({ stdin, out }: CliContext, again: boolean): Promise<string | undefined> {
  if (!stdin.isTTY) return undefined
  out.warn('the passphrase, which is not shown:')
  const passphrase = await readHidden(stdin)
  if (!passphrase) throw new AppError('invalid_request', 'no passphrase was typed')
  if (!again) return passphrase
  out.warn('the same passphrase again:')
  if ((await readHidden(stdin)) !== passphrase) throw new AppError('invalid_request', 'the two passphrases differ')
  return passphrase
}

export const passphraseMissing = (): AppError =>
  new AppError('invalid_request', `a passphrase is needed: give it with --passphrase-file or in ${VARIABLE}`)
