/** What `sluice doctor` proves of passkeys on this machine. */
import { errorText, type Finding, type SecretStore } from '@sluice/sdk'
import type { WebauthnConfig } from './config.ts'
import { loadWebauthn, loadWebauthnHelpers } from './library.ts'
import type { Passkeys } from './passkeys.ts'

const PROBE = 'probe'

export async function check({ rp_id, rp_origin }: WebauthnConfig, secrets: SecretStore, passkeys: Passkeys): Promise<Finding[]> {
  return [
    { status: 'ok', detail: `passkeys belong to ${rp_id} and are used at ${rp_origin}` },
    await proved(
      'the library for passkeys loads',
      () => Promise.all([loadWebauthn(), loadWebauthnHelpers()]),
      'install or build Sluice anew',
    ),
    await proved(
      'the secret store takes and gives',
      () => roundTrip(secrets),
      'see that secret.key in the data directory is there and yours',
    ),
    await counted(passkeys),
  ]
}

async function proved(detail: string, work: () => Promise<unknown>, fix: string): Promise<Finding> {
  try {
    await work()
    return { status: 'ok', detail }
  } catch (error) {
    return { status: 'fail', detail: `${detail}: no, ${errorText(error)}`, fix }
  }
}

async function roundTrip(secrets: SecretStore): Promise<void> {
  await secrets.set(PROBE, PROBE)
  const isKept = (await secrets.get(PROBE)) !== undefined
  await secrets.delete(PROBE)
  if (!isKept) throw new Error('what was kept a moment ago is gone')
}

async function counted(passkeys: Passkeys): Promise<Finding> {
  try {
    const count = await passkeys.count()
    const detail = `${count.passkeys} passkeys of ${count.users} users`
    if (count.disabled === 0) return { status: 'ok', detail }
    const fix = 'delete them with `sluice passkeys remove`, and register the keys anew if they are still yours alone'
    return {
      status: 'warn',
      detail: `${detail}, ${count.disabled} of them disabled: their counters went back, so there may be copies`,
      fix,
    }
  } catch (error) {
    return { status: 'fail', detail: errorText(error), fix: 'restore sluice.db and secret.key from the same backup' }
  }
}
