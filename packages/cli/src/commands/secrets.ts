/** `sluice secrets rotate`: encrypts every stored secret with a new key. */
import { rotateSecrets } from '@sluice/config/rotate-secrets'
import type { CliContext } from '../context.ts'

export async function rotate(context: CliContext): Promise<number> {
  const { out, json } = context
  const { changed, unreadable } = await rotateSecrets(context)
  if (json) out.json({ encrypted: changed, unreadable })
  else {
    for (const path of unreadable) out.warn(`${out.style('yellow', 'warning')}: ${path} could not be decrypted before either; set it again`)
    out.print(`${changed} ${changed === 1 ? 'secret is' : 'secrets are'} encrypted with the new key, and the old key is deleted`)
  }
  return 0
}
