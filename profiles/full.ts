import fedchat from '@sluice/channel-fedchat'
import workchat from '@sluice/channel-workchat'
import { main } from '@sluice/cli'
import dashboard from '@sluice/dashboard'
import adapter from '@sluice/hardware-adapter'
import boards from '@sluice/hardware-boards'
import mcp from '@sluice/mcp'
import otel from '@sluice/observability-otel'
import google from '@sluice/provider-google'
import fsrestrict from '@sluice/sandbox-fsrestrict'
import postgres from '@sluice/store-postgres'
import browserNative from '@sluice/tool-browser-native'
import pdf from '@sluice/tool-pdf'
import schedule from '@sluice/tool-schedule'
import skills from '@sluice/tool-skills'
import web from '@sluice/tool-web'
import webPush from '@sluice/web-push'
import { always } from './always.ts'

const chats = [fedchat, workchat]
const tools = [browserNative, pdf, mcp, skills, schedule, web]
const pages = [dashboard, webPush]

await main({ profile: 'full', features: [...always, ...chats, ...tools, ...pages, fsrestrict, google, boards, adapter, otel, postgres] })
