/** The name of a channel for people, in place of that of its section, which is its title. */
import { useOverview } from '../data/queries.ts'
import { role } from '../data/session.ts'
import { Name } from './text.tsx'

/** Returns the name of a configured channel; any other text is returned as it is. */
export function useChannelNames(): (channel: string) => string {
  // The frame of the page has the overview loaded.
  const { data } = useOverview(role.value === 'operator')
  const titles = new Map(data?.health.channels.map(({ channel, title }) => [channel, title]))
  return (channel) => titles.get(channel) ?? channel
}

/** `account` is shown behind the name. */
export function ChannelName({ channel, account }: { readonly channel: string; readonly account?: string | null | undefined }) {
  const name = useChannelNames()(channel)
  return (
    <span title={name === channel ? undefined : channel}>
      <Name value={account ? `${name} (${account})` : name} />
    </span>
  )
}
