@echo off
rem Installs Sluice from this folder, which is a clone of the repository or an unpacked archive: install.bat --standard
rem Passes its options on to install.ps1.
setlocal
set OPTIONS=

:next
if "%~1"=="" goto run
if /I "%~1"=="--minimal" goto minimal
if /I "%~1"=="--standard" goto standard
if /I "%~1"=="--full" goto full
if /I "%~1"=="--system" goto system
if /I "%~1"=="--user" goto user
if /I "%~1"=="--uninstall" goto uninstall
if /I "%~1"=="--prefix" goto prefix
echo install: unknown option %1 1>&2
echo usage: install.bat [--minimal^|--standard^|--full] [--user^|--system] [--prefix folder] [--uninstall] 1>&2
exit /b 2

:minimal
set OPTIONS=%OPTIONS% -Mode Minimal
shift
goto next

:standard
set OPTIONS=%OPTIONS% -Mode Standard
shift
goto next

:full
set OPTIONS=%OPTIONS% -Mode Full
shift
goto next

:system
set OPTIONS=%OPTIONS% -System
shift
goto next

:user
shift
goto next

:uninstall
set OPTIONS=%OPTIONS% -Uninstall
shift
goto next

:prefix
set OPTIONS=%OPTIONS% -Prefix "%~2"
shift
shift
goto next

:run
powershell -NoProfile -ExecutionPolicy Bypass -File "%~dp0install.ps1"%OPTIONS%
exit /b %ERRORLEVEL%
