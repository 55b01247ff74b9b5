/** This browser: its session, and its notifications. */
import { useQuery } from '@tanstack/preact-query'
import { ApiError, answered, api } from '../data/api.ts'
import { canNotify, ownEndpoint, turnOff, turnOn } from '../data/push.ts'
import { refresh, useApi } from '../data/queries.ts'
import { role } from '../data/session.ts'
import { Act } from '../ui/controls.tsx'
import { Badge, Card, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { MonoName } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'

/** The part of the state that only the browser knows. */
const IN_BROWSER = 'this browser'

export function ThisBrowser() {
  const own = useApi('/api/dashboard/session', {})
  return (
    <Page title="This browser" about="Its session, and what it notifies you of while the page is closed.">
      <Card title="Session" padded>
        <Loaded query={own}>
          {({ device, role: has }) => (
            <Facts
              rows={[
                ['Role', <Badge key="role" state={has} tone={has === 'operator' ? 'info' : 'quiet'} />],
                device !== null && ['Device', <MonoName key="device" value={device} />],
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Notifications" padded>
        <Notifications />
      </Card>
    </Page>
  )
}

function Notifications() {
  const push = useApi('/api/web-push', {})
  const endpoint = useQuery({ queryKey: [IN_BROWSER], queryFn: ownEndpoint, enabled: canNotify() })
  const { error } = push
  if (error instanceof ApiError && error.status === 404)
    return <NotOffered isCompiled={error.code !== 'not_compiled'} message={error.message} />
  if (!canNotify())
    return (
      <Note tone="warn">
        This browser cannot have notifications here. It needs <code>https</code> or <code>http://localhost</code>; an iPhone or iPad needs
        the page on its home screen.
      </Note>
    )
  const changed = () => refresh('/api/web-push', IN_BROWSER)
  return (
    <Loaded query={push}>
      {({ public_key, endpoint: known }) => {
        const isOn = known !== null && known === endpoint.data && Notification.permission === 'granted'
        return (
          <div class="stack">
            <p>
              {role.value === 'operator'
                ? 'It notifies you of approvals that you may decide, and of messages and replies that were given up.'
                : 'It notifies you of approvals that you may decide.'}{' '}
              The texts of people are not in it.
            </p>
            {Notification.permission === 'denied' && (
              <Note tone="warn">The browser forbids notifications of this page. Allow them in its settings of the page.</Note>
            )}
            <div class="row">
              <Badge state={isOn ? 'on' : 'off'} tone={isOn ? 'ok' : 'quiet'} />
              {isOn ? (
                <>
                  <Act work={() => attempt(() => answered(api.POST('/api/web-push/test')), 'Sent. It arrives within seconds.')}>
                    Send a test
                  </Act>
                  <Act
                    work={async () => {
                      await attempt(turnOff, 'Notifications are off in this browser.')
                      await changed()
                    }}
                  >
                    Turn off
                  </Act>
                </>
              ) : (
                <Act
                  class="primary"
                  work={async () => {
                    await attempt(() => turnOn(public_key), 'Notifications are on in this browser.')
                    await changed()
                  }}
                >
                  Turn on
                </Act>
              )}
            </div>
          </div>
        )
      }}
    </Loaded>
  )
}

function NotOffered({ isCompiled, message }: { readonly isCompiled: boolean; readonly message: string }) {
  if (!isCompiled) return <p class="quiet">{message}</p>
  return (
    <p class="quiet">
      Notifications are turned off in the configuration of the gateway.{' '}
      {role.value === 'operator' ? <a href="#/configuration?section=web_push">Turn them on</a> : 'An operator can turn them on.'}
    </p>
  )
}
