# The SDK: the folder that ACCEL_RL_UPMEM_SDK names, or UPMEM_HOME, or whose commands are on PATH.
set(ACCEL_RL_UPMEM_SDK "$ENV{UPMEM_HOME}" CACHE PATH "UPMEM's SDK, or pim_emu's SDK folder")

function(find_sdk_command variable name)
  find_program(${variable} ${name} HINTS "${ACCEL_RL_UPMEM_SDK}/bin")
  if(NOT ${variable})
    message(FATAL_ERROR "there is no ${name}: install UPMEM's SDK and source its upmem_env.sh, or "
      "name pim_emu's folder, which `pim-emu sdk-path` prints, with "
      "-DACCEL_RL_UPMEM_SDK=...")
  endif()
endfunction()
