/** The checks of `sluice doctor` for passkeys on this machine. */
import { errorText, type Finding, type SecretStore } from '@sluice/sdk'
import type { WebauthnConfig } from './config.ts'
import { loadWebauthn, loadWebauthnHelpers } from './library.ts'
import type { PasskeyStore } from './passkeys.ts'

const PROBE = 'probe'

export async function checkPasskeys(
  { rp_id, rp_origin }: WebauthnConfig,
  secrets: SecretStore,
  passkeys: PasskeyStore,
): Promise<Finding[]> {
  return [
    { status: 'ok', detail: `passkeys belong to ${rp_id} and are used at ${rp_origin}` },
    await findingOf(
      'loading the passkey library',
      () => Promise.all([loadWebauthn(), loadWebauthnHelpers()]),
      'reinstall or rebuild Sluice',
    ),
    await findingOf(
      'writing and reading the secret store',
      () => roundTrip(secrets),
      'check that secret.key in the data directory exists and belongs to you',
    ),
    await countFinding(passkeys),
  ]
}

async function findingOf(step: string, work: () => Promise<unknown>, fix: string): Promise<Finding> {
  try {
    await work()
    return { status: 'ok', detail: `${step} works` }
  } catch (error) {
    return { status: 'fail', detail: `${step} failed: ${errorText(error)}`, fix }
  }
}

async function roundTrip(secrets: SecretStore): Promise<void> {
  await secrets.set(PROBE, PROBE)
  const isStored = (await secrets.get(PROBE)) !== undefined
  await secrets.delete(PROBE)
  if (!isStored) throw new Error('a secret was missing right after it was written')
}

async function countFinding(passkeys: PasskeyStore): Promise<Finding> {
  try {
    const count = await passkeys.count()
    const detail = `${count.passkeys} passkeys of ${count.users} users`
    if (count.disabled === 0) return { status: 'ok', detail }
    const fix = 'remove them with `sluice passkeys remove`, and register the authenticators again if only their owners have them'
    return {
      status: 'warn',
      detail: `${detail}, ${count.disabled} of them disabled: their counters did not increase, so there may be copies`,
      fix,
    }
  } catch (error) {
    return { status: 'fail', detail: errorText(error), fix: 'restore sluice.db and secret.key from the same backup' }
  }
}
