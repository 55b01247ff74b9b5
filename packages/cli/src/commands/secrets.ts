/** `sluice secrets rotate`: encrypts every stored secret with a new key. */
import { rotateSecrets } from '@sluice/config/rotate-secrets'
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import { configuredStoreTools, withClusterConfig } from '@sluice/runtime/open-backend'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

export async function rotate(context: CliContext): Promise<number> {
  const { out, json } = context
  const reencryptServer = await serverOf(context)
  const { changed, unreadable } = await withClusterConfig(context, (source) => rotateSecrets({ ...source, reencryptServer }))
  if (json) out.json({ encrypted: changed, unreadable })
  else {
    for (const path of unreadable) out.warn(`${out.style('yellow', 'warning')}: ${path} could not be decrypted before either; set it again`)
    out.print(`${changed} ${changed === 1 ? 'secret is' : 'secrets are'} encrypted with the new key, and the old key is deleted`)
  }
  return 0
}

/** Undefined for the embedded database. A server must be reachable: the old key is deleted at the end. */
async function serverOf(context: CliContext) {
  const log = createLogger({ secrets: () => [], level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const tools = await configuredStoreTools({ ...context, log })
  if (!tools) return undefined
  const { backend, options } = tools
  if (!backend.reencrypt) throw new AppError('not_compiled', 'This build cannot encrypt the secrets in the database again.')
  const reencrypt = backend.reencrypt.bind(backend)
  return (oldId: string | null) => reencrypt({ ...options, oldId })
}
