/** Checks that every row of a shared database which nodes trust carries the HMAC of a machine with `secret.key`. */
import { refusedRows, type Store } from '@sluice/sdk'
import { type Check, fail, ok, warn } from './check.ts'

const NAMED_MAX = 5
const FIX = 'sluice cluster sign'

/** Empty for the embedded database. */
export async function checkSignatures(store: Pick<Store, 'unverifiedRows'>): Promise<Check[]> {
  const survey = await store.unverifiedRows?.()
  if (!survey) return []
  const { isDemanded, unverified, configVersion, configSeen } = survey
  const refused = refusedRows(survey)
  const checks: Check[] = []
  if (refused.length > 0) {
    const named = refused.slice(0, NAMED_MAX).map(({ name, fault }) => `${name} (${fault ?? 'not signed'})`)
    const more = refused.length > NAMED_MAX ? `; and ${refused.length - NAMED_MAX} more` : ''
    checks.push(
      fail('signatures', `rows of the database are refused: ${named.join('; ')}${more}`, `look at them, and sign or remove them: ${FIX}`),
    )
  }
  if (configVersion < configSeen)
    checks.push(
      fail(
        'signatures',
        `the newest configuration in the database is version ${configVersion}, but this machine has read version ${configSeen}`,
        `after a recovery of the database: sluice store recovered, or ${FIX}`,
      ),
    )
  if (!isDemanded) {
    const unsigned = unverified.length - refused.length
    checks.push(
      warn(
        'signatures',
        `rows without an HMAC are accepted (${unsigned} now), so that a user who can write the database can change the configuration and add devices`,
        `upgrade every node, and then run ${FIX}`,
      ),
    )
  }
  return checks.length > 0 ? checks : [ok('signatures', 'every row of configuration, devices and grants is signed with secret.key')]
}
