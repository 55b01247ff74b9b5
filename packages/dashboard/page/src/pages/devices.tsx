/** The paired devices, this browser among them: pairing, revoking, and passkeys. */
import { useState } from 'preact/hooks'
import { answered, api } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { Act, Choose, Copy } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Badge, Card, Loaded, Note, Page } from '../ui/parts.tsx'
import { THIS_BROWSER } from '../ui/person.tsx'
import { QrCode } from '../ui/qr-code.tsx'
import { Table } from '../ui/table.tsx'
import { Line, Name } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { ClockTime, Time } from '../ui/values.tsx'

export function Devices() {
  const devices = useApi('/api/devices', {})
  const own = useApi('/api/dashboard/session', {})
  return (
    <Page
      title="Devices"
      about="Each has a token or a session of its own. Revoking a device ends its session and its open streams at once."
    >
      <Pair />
      <Card title="Paired devices">
        <Loaded query={devices}>
          {({ devices: rows }) => (
            <Table
              label="Paired devices"
              rows={rows}
              keyOf={({ id }) => id}
              empty="No device is paired."
              columns={[
                {
                  name: 'Name',
                  heads: true,
                  show: ({ id, name }) => (
                    <span class="row" title={id}>
                      <Line value={name} />
                      {id === own.data?.device && <Badge state={THIS_BROWSER} tone="info" />}
                    </span>
                  ),
                },
                { name: 'Role', show: ({ role }) => <Badge state={role} tone={role === 'operator' ? 'info' : 'quiet'} /> },
                { name: 'Paired', show: ({ paired_at }) => <Time at={paired_at} /> },
                { name: 'Last seen', show: ({ last_seen }) => <Time at={last_seen} /> },
                { name: 'Address', show: ({ ip_address }) => ip_address && <Name value={ip_address} /> },
                { name: 'Expires', show: ({ expires_at }) => <Time at={expires_at} /> },
                {
                  name: 'Actions',
                  quietName: true,
                  show: ({ id, name }) => (
                    <Act
                      class="small danger"
                      work={async () => {
                        if (
                          !(await confirmed(
                            `Revoke ${name}?`,
                            'Its token, its session and its passkeys are refused from now on.',
                            'Revoke',
                          ))
                        )
                          return
                        await attempt(() => answered(api.DELETE('/api/devices/{id}', { params: { path: { id } } })), 'Revoked.')
                        await refresh('/api/devices')
                      }}
                    >
                      Revoke<span class="hidden-text"> {name}</span>
                    </Act>
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Passkeys />
    </Page>
  )
}

interface Invitation {
  readonly url: string
  readonly reachable: boolean
  readonly qr: readonly string[]
  readonly expires_at: string
}

/** Lets another person in: a browser by a link or its QR code, a program by a code. */
function Pair() {
  const [role, setRole] = useState<'client' | 'operator'>('client')
  const [link, setLink] = useState<Invitation | undefined>()
  const [code, setCode] = useState<{ readonly code: string; readonly expires: string } | undefined>()
  const invite = async () => {
    setCode(undefined)
    setLink(await attempt(() => answered(api.POST('/api/dashboard/links', { body: { role } }))))
  }
  const makeCode = async () => {
    setLink(undefined)
    const done = await attempt(() => answered(api.POST('/api/pairing/initiate', { params: { query: { role } } })))
    setCode(done && { code: done.pairing_code, expires: done.expires_at })
  }
  return (
    <Card title="Let another person or device in" padded>
      <div class="stack">
        <div class="filters">
          <Choose
            label="Role"
            value={role}
            options={[
              ['client', 'client: chats, and sees only what is its own'],
              ['operator', 'operator: sees and changes everything'],
            ]}
            onChange={(value) => {
              setRole(value === 'operator' ? 'operator' : 'client')
              setLink(undefined)
              setCode(undefined)
            }}
          />
          <Act class="primary" work={invite}>
            Make a link for a browser
          </Act>
          <Act work={makeCode}>Make a code for a program</Act>
        </div>
        <div aria-live="polite">
          {link && (
            <div class="row">
              <QrCode rows={link.qr} />
              <div class="stack grow">
                <p>
                  Scan the code with the phone of the person, or send them the link. It signs one browser in as {role}, and works until{' '}
                  <ClockTime at={link.expires_at} />.
                </p>
                <div class="row">
                  <code class="link">{link.url}</code> <Copy text={link.url} />
                </div>
                {!link.reachable && (
                  <Note tone="warn">
                    Only a browser on the machine of the gateway reaches this address. For others, set <code>[gateway] public_url</code>, or
                    bind an address of the network. <a href="#/configuration?section=gateway">Open its settings</a>
                  </Note>
                )}
              </div>
            </div>
          )}
          {code && (
            <Note tone="info">
              <div class="row">
                <span>
                  The code <strong class="mono">{code.code}</strong> works once, until <ClockTime at={code.expires} />. The program sends it
                  as <code>X-Pairing-Code</code> to <code>POST /pair</code>, and gets a token.
                </span>
                <Copy text={code.code} />
              </div>
            </Note>
          )}
        </div>
      </div>
    </Card>
  )
}

/** The passkeys of all people, with which they sign in here. */
function Passkeys() {
  const features = useApi('/api/features', {})
  const webauthn = features.data?.features.find(({ feature }) => feature === 'webauthn')
  const passkeys = useApi('/api/webauthn/credentials', {}, { enabled: webauthn?.state === 'ready' })
  if (!webauthn) return null
  if (webauthn.state !== 'ready')
    return (
      <Card title="Passkeys" padded>
        <p class="quiet">
          Passkeys are {webauthn.compiled ? 'not configured' : 'not in this build'}.{' '}
          {webauthn.build ? <code>{webauthn.build}</code> : <a href="#/configuration?section=security.webauthn">Configure them</a>}
        </p>
      </Card>
    )
  return (
    <Card
      title="Passkeys"
      actions={
        <a class="button" href="passkey">
          Register a passkey
        </a>
      }
    >
      <Loaded query={passkeys}>
        {({ credentials }) => (
          <Table
            label="Passkeys"
            rows={credentials}
            keyOf={({ credential_id }) => credential_id}
            empty="No passkey is registered."
            columns={[
              { name: 'Passkey', heads: true, show: ({ label }) => <Line value={label} /> },
              { name: 'Person', show: ({ user_name }) => <Line value={user_name} /> },
              { name: 'Role', show: ({ role }) => <Badge state={role} tone={role === 'operator' ? 'info' : 'quiet'} /> },
              { name: 'Registered', show: ({ registered_at }) => <Time at={registered_at} /> },
              { name: 'Last used', show: ({ last_used_at }) => <Time at={last_used_at} /> },
              {
                name: 'State',
                show: ({ disabled, backed_up }) => (
                  <Badge state={disabled ? 'disabled' : backed_up ? 'backed up' : 'on one device'} tone={disabled ? 'bad' : 'ok'} />
                ),
              },
              {
                name: 'Actions',
                quietName: true,
                show: ({ credential_id: id, label }) => (
                  <Act
                    class="small danger"
                    work={async () => {
                      if (!(await confirmed(`Remove the passkey ${label}?`, 'Nobody can sign in with it from now on.', 'Remove'))) return
                      await attempt(() => answered(api.DELETE('/api/webauthn/credentials/{id}', { params: { path: { id } } })), 'Removed.')
                      await refresh('/api/webauthn')
                    }}
                  >
                    Remove
                  </Act>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  )
}
