/** Passkeys: registered by whoever has a token, good for a token where there is none (§4.6, §5 rule 7). */
import { defineFeature } from '@sluice/sdk'
import { apiRoutes } from './api-routes.ts'
import { check } from './check.ts'
import { passkeyCommands } from './commands.ts'
import { webauthnSection } from './config.ts'
import { pageRoutes } from './page-routes.ts'
import { createPasskeys } from './passkeys.ts'
import { createRegistrations } from './registration.ts'
import { createSignIns } from './sign-ins.ts'

export default defineFeature({
  id: 'webauthn',
  section: webauthnSection,
  build(host, config) {
    const passkeys = createPasskeys(host.secrets, () => host.service('pairing'))
    const commands = passkeyCommands(passkeys)
    if (!config.enabled) return { commands, disabledReason: '`enabled` is false' }
    const registrations = createRegistrations(host, config, passkeys)
    const signIns = createSignIns(host, config, passkeys)
    return {
      commands,
      routes: [...apiRoutes({ passkeys, registrations, signIns }), ...pageRoutes(config, signIns)],
      check: () => check(config, host.secrets, passkeys),
    }
  },
})
