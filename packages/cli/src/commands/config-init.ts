/** `sluice config init`: a commented starter file; an existing one is never touched. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { sectionsOf, starterConfig } from '@sluice/config'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

export async function run({ out, json, configFile, features }: CliContext): Promise<number> {
  const text = await starterConfig(sectionsOf(features))
  await mkdir(dirname(configFile), { recursive: true, mode: 0o700 })
  try {
    await writeFile(configFile, text, { flag: 'wx', mode: 0o600 })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw new AppError('conflict', `${configFile} exists already`, { cause })
    throw new AppError('unavailable', `${configFile} cannot be written: ${(cause as Error).message}`, { cause })
  }
  if (json) out.json({ file: configFile })
  else out.print(`wrote ${configFile}`)
  return 0
}
