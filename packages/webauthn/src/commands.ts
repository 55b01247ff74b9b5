/** The commands `sluice passkeys list` and `sluice passkeys remove`, which also work while passkeys are disabled. */
import { AppError, actorName, CATALOGUE, type Command, type Host } from '@sluice/sdk'
import { credentialView } from './api-routes.ts'
import type { PasskeyStore } from './passkeys.ts'

export function passkeyCommands(host: Host, passkeys: PasskeyStore): Command[] {
  const { commandHelp } = CATALOGUE.webauthn
  return [
    {
      name: 'passkeys list',
      ...commandHelp['passkeys list'],
      async run({ args, json, print }) {
        if (args.length > 0) throw new AppError('invalid_request', "'passkeys list' takes no arguments")
        const credentials = (await passkeys.all()).map(credentialView)
        if (json) print(JSON.stringify(credentials, null, 2))
        else if (credentials.length === 0) print('no passkey is registered')
        const devices = { find: async (id: string) => host.service('pairing')?.device(id) }
        for (const { credential_id, user_id, label, role, registered_by, registered_at, disabled } of json ? [] : credentials) {
          const by = registered_by === null ? 'without a device' : `by ${await actorName(`device:${registered_by}`, devices)}`
          print(`${credential_id}  ${user_id}  ${label}  ${role}  registered ${registered_at} ${by}${disabled ? '  disabled' : ''}`)
        }
        return 0
      },
    },
    {
      name: 'passkeys remove',
      ...commandHelp['passkeys remove'],
      async run({ args, by, json, print }) {
        const [id] = args
        if (id === undefined || args.length > 1) throw new AppError('invalid_request', "'passkeys remove' takes one credential id")
        if (!(await passkeys.remove(undefined, id)))
          throw new AppError('not_found', `Passkey '${id}' does not exist. Run 'sluice passkeys list' to see all passkeys.`)
        await host.service('audit')?.({ kind: 'passkey_removed', by, detail: { passkey: id } })
        print(json ? JSON.stringify({ removed: id }) : `removed ${id}`)
        return 0
      },
    },
  ]
}
